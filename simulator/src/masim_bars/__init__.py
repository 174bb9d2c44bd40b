"""The bars that a world has to meet, measured from its files alone. Imports nothing of the simulator."""
