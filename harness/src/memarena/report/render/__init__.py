"""Renders a report in each of its formats."""
