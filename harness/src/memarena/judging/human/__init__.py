"""Draws answers for people to label, reads their labels, and computes how far people and a judge agree."""
