"""Finds backends by name, starts them as a process or a container, and restarts them after a crash."""
