"""Defines the error of this package."""

from memarena_dataset.errors import MemArenaError


class QualityError(MemArenaError):
    """An input of the caller cannot be measured; the message is one line for people."""
