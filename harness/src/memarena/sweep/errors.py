"""Defines the errors of sweeps that a user can correct."""

from memarena_dataset.errors import MemArenaError


class SweepError(MemArenaError):
    """A sweep cannot be run as requested; the message is one line for the user."""


class StorageError(SweepError):
    """A storage fails to store or return a file."""
