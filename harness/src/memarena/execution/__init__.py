"""Executes runs: plans them, starts their backends and models, asks the questions, and writes the log."""
