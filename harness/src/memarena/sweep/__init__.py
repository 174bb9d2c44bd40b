"""Runs sweeps: many runs of a single cell, on one machine or several, sealed one by one and listed in a manifest."""
