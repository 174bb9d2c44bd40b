"""A static site over many runs and bundles: rankings, fronts, a page for each memory, data set and submission."""
