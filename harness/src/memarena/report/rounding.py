"""Rounds numbers of JSON, so that machines whose sums differ in the last bit write the same bytes.

The entries of the site are written so. ``render/json.py`` rounds to decimals instead.
"""

from __future__ import annotations

from pydantic import JsonValue

_DIGITS = 9
"""Significant digits: far more than a report shows, and fewer than the about 16 of a float."""


def rounded(value: JsonValue) -> JsonValue:
    """Return a JSON value with all floats in it rounded to 9 significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return value
