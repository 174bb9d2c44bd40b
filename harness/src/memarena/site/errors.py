"""Defines the error of sites and submissions."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class SiteError(MemArenaError):
    """Raised for an invalid site or submission; the message names file, field and what is expected."""
