"""One module for each dimension: when an answer is right."""
