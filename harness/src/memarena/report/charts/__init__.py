"""Draws the figures of a report as small SVG, readable without colour, in light and dark, and by a screen reader."""
