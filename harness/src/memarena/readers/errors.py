"""Defines the error of readers that cannot be used."""

from memarena_dataset.errors import MemArenaError


class ReaderError(MemArenaError):
    """A reader cannot be used; the message is one line for the user."""
