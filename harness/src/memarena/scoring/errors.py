"""What can go wrong in scoring, as one line for the user."""


class ScoringError(Exception):
    """The log does not allow what was requested; the message is one line."""
