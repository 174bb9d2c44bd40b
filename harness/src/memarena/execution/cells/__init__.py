"""Executes one cell, a backend with a reader and a seed: sends days, asks questions, and logs each fact at once."""
