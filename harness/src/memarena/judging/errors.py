"""Defines the error of judging, whose message is one line for the user."""

from memarena_dataset.errors import MemArenaError


class JudgeError(MemArenaError):
    """A judge cannot do its work; the message is one line."""
