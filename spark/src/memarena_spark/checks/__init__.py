"""Checks a node before a run: functions from node, plan and profile to refusals."""
