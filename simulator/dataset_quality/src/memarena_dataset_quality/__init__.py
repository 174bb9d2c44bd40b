"""Measures the quality of a data set from its files alone. Imports nothing of the simulator."""
