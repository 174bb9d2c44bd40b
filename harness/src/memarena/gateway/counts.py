"""Numbers as servers report them: what cannot be a count or a span is none."""

from __future__ import annotations

import math

from pydantic import JsonValue

MOST_TOKENS = 2**32 - 1
"""Largest count that is believed, and that the contract's fields hold (uint32)."""
_MOST_MS = 1e9


def count(value: JsonValue) -> int | None:
    """A number of tokens, None for what cannot be one."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and isinstance(value, int) and 0 <= value <= MOST_TOKENS else None


def milliseconds(value: JsonValue) -> float | None:
    """A span as a server reports it, None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value < _MOST_MS else None
