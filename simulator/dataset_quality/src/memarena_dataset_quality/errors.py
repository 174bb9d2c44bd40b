"""The one error of this package."""

from memarena_dataset.errors import MemArenaError


class QualityError(MemArenaError):
    """Something that the caller gave cannot be measured; the message is one line for people."""
