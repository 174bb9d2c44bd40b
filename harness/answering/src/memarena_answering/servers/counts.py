"""Checks the token counts and durations that servers report; an impossible value becomes None."""

from __future__ import annotations

import math

MOST_TOKENS = 2**32 - 1
"""Largest count that is accepted: the maximum of the contract's fields (uint32)."""
_MOST_MS = 1e9
"""Bound of a duration that is accepted, about twelve days."""


def count(value: object) -> int | None:
    """Return a number of tokens, or None if the value cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def milliseconds(value: object) -> float | None:
    """Return a duration in milliseconds, or None if the value cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value < _MOST_MS else None
