"""The error of readers that cannot be used."""


class ReaderError(Exception):
    """A reader cannot be used; the message is one line for the user."""
