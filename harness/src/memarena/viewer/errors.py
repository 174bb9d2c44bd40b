"""Errors of the viewer."""


class ViewerError(Exception):
    """The viewer cannot do what was asked; the message is one line for the user."""
