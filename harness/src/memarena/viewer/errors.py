"""Errors of the viewer."""

from memarena_dataset.errors import MemArenaError


class ViewerError(MemArenaError):
    """Raised for a request that the viewer cannot fulfil; the message is one line for the user."""
