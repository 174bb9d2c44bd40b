"""Reads and writes the files of a data set."""
