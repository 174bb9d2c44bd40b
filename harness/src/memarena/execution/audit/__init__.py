"""Audits items that backends return, and prompts, against the text that was ingested."""
