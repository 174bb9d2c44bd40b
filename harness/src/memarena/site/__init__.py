"""Builds and checks a static site over runs and bundles: rankings, fronts, and pages of memories, data sets, runs."""
