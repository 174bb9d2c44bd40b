"""Builds the tables of a report, one module for each subject."""
