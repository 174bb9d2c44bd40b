"""Figures of a report as small SVG: readable without colour, in light and dark, by eye and by screen reader."""
