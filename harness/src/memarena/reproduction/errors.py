"""Defines the error that ends a reproduction before it begins."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class ReproductionError(MemArenaError):
    """Bad input: a table, a file of readers; the message is one line for the user."""
