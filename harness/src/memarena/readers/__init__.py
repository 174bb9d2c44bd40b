"""Readers: starting, checking and scripting the model servers that answer over what a memory returned."""
