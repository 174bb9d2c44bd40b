"""Backends of a run: found by name, started as a process or a container, brought back after a crash."""
