"""An answer in parts that each say one thing, so that what one part asks of a judge is not said of another."""

from __future__ import annotations

import re

_BETWEEN = re.compile(r"[.!?]+[\"')\]]*(?=\s|$)|[;()\[\]{}\u2013\u2014\n]+|:(?=\s)|\s-+(?=\s)")
_MOST = 8
"""Neighbours are drawn together until there are no more: each part may cost a call."""


def parts_of(answer: str) -> tuple[str, ...]:
    """Sentences and what stands between brackets, dashes, colons or semicolons, without what parts them."""
    pieces = [part.strip() for part in _BETWEEN.split(answer)]
    parts = [part for part in pieces if any(c.isalnum() for c in part)]
    size = -(-len(parts) // _MOST)
    return tuple(". ".join(parts[n : n + size]) for n in range(0, len(parts), size)) if parts else ()
