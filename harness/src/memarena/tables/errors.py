"""The error of this package."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class TableError(MemArenaError):
    """A table or a format that does not exist, a library that is missing, or a folder that cannot be written."""
