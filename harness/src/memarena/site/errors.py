"""The error of sites and submissions."""

from __future__ import annotations

from memarena_dataset.errors import MemArenaError


class SiteError(MemArenaError):
    """A site or submission that cannot be used; the message names file, field and what is expected."""
