"""What a run will do: options, cells, questions, and everything that is checked before it begins."""
