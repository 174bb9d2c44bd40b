"""Starts, checks and scripts readers: the model servers that answer from the items of a memory."""
