"""The one error of this package."""


class QualityError(Exception):
    """Something that the caller gave cannot be measured; the message is one line for people."""
