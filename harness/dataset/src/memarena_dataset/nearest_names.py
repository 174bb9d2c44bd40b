"""Suggests names that a mistyped name may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: the most similar of ``names``; empty if none is similar."""
    matches = get_close_matches(name.lower(), list(names), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(matches)}?" if matches else ""
