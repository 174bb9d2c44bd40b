"""Reports: from scores to terminal tables, Markdown, LaTeX, HTML and JSON, and the traces of single questions.

A report depends on its input alone. No module here reads a log; ``tables/calibration.py`` reads a user's file.
"""
