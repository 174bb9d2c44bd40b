"""Reports: pure, from scores to terminal tables, Markdown and JSON, and the traces of single questions."""
