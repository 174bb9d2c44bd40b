"""What can be wrong with a latency study."""

from memarena_dataset.errors import MemArenaError


class LatencyError(MemArenaError):
    """A study cannot be made or read; the message is one line for the user."""
