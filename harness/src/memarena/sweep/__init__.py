"""Sweeps: many runs of one cell each, on this machine or on several, sealed one by one and listed in a manifest."""
