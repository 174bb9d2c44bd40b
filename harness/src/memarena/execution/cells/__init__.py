"""Executes one cell: sends days, asks questions, and logs each fact as it happens."""
