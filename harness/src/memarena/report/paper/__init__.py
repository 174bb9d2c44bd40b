"""Compares the figures of runs with those of the paper."""
