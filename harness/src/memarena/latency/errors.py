"""Defines the error of latency studies."""

from memarena_dataset.errors import MemArenaError


class LatencyError(MemArenaError):
    """A study cannot be run or read; the message is one line for the user."""
