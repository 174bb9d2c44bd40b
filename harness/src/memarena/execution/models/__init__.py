"""Manages the models of a run: starts them, warms them up, and restarts them when they die."""
