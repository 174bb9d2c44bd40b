"""What a user of sweeps can mend."""

from memarena_dataset.errors import MemArenaError


class SweepError(MemArenaError):
    """A sweep cannot be done as asked; the message is one line for the user."""


class StorageError(SweepError):
    """A storage does not take or give what it should."""
