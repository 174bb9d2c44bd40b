"""Defines the error of this package."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class TableError(MemArenaError):
    """Raised for an unknown table or format, a missing library, or a folder that cannot be written."""
