"""Defines the error of scoring, whose message is one line for the user."""

from memarena_dataset.errors import MemArenaError


class ScoringError(MemArenaError):
    """The log does not allow what was requested; the message is one line."""
