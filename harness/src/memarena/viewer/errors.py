"""Errors of the viewer."""

from memarena_dataset.errors import MemArenaError


class ViewerError(MemArenaError):
    """The viewer cannot do what was asked; the message is one line for the user."""
