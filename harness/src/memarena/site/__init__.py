"""Builds and checks a static site over many runs and bundles: rankings, fronts, pages of memories, data sets and runs."""
