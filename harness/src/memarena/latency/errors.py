"""What can be wrong with a latency study."""


class LatencyError(Exception):
    """A study cannot be made or read; the message is one line for the user."""
