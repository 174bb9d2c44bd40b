"""Runs the cells of a sweep: as processes of this machine, or on a Ray cluster."""
