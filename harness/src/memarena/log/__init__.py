"""Defines the run log: its record types, its single writer, its readers."""
