"""Numbers as servers report them: what cannot be a count or a span is none."""

from __future__ import annotations

import math

MOST_TOKENS = 2**32 - 1
"""Largest count that is believed, and that the contract's fields hold (uint32)."""
_MOST_MS = 1e9


def count(value: object) -> int | None:
    """A number of tokens, None for what cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def milliseconds(value: object) -> float | None:
    """A span as a server reports it, None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value < _MOST_MS else None
