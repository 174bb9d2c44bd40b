"""What can go wrong in judging, as one line for the user."""


class JudgeError(Exception):
    """A judge cannot do its work; the message is one line."""
