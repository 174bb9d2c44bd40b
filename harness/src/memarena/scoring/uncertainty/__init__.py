"""Computes the uncertainty of figures: bootstrap over egos, intervals, kinds of variance."""
