"""Reproduces the paper's tables: runs the sweeps and studies of a table, and prints the paper's figures and ours."""
