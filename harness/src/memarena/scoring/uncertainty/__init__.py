"""Uncertainty of figures: bootstrap over egos, intervals, paired differences."""
