"""Checks of a node before a run: pure functions from facts, plan and profile to refusals."""
