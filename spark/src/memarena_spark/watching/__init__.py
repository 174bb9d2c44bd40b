"""Watches the readers of a run: which processes answer, and to which addresses these are connected."""
