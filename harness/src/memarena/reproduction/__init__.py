"""Reproduces the paper's tables: runs the sweeps and studies of a table, and prints the paper's figures and ours.

A sweep gives scores, a (latency) study gives times. ``memarena reproduce`` is its command.
"""
