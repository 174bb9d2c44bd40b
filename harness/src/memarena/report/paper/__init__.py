"""Compares the figures of runs with those of the paper, whose tables are in ``memarena/paper``."""
