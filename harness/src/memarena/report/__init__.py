"""Reports: pure, from scores to terminal tables, Markdown and JSON, and the story of single questions."""
