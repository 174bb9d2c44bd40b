"""Defines the error type of MaSim."""

from memarena_dataset.errors import MemArenaError


class MasimError(MemArenaError):
    """A fault that a user can correct: in a flag, a file, a phrase bank. The message is one line that names it."""
