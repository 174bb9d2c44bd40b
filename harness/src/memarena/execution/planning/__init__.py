"""Plans a run: its options, cells and questions, and all checks before it begins."""
