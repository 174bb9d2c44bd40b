"""Splits an answer into parts that each state one thing, so that a judge can be asked about each separately.

``request.py`` does so where a fact must be withheld (D6): words in one part cannot influence how another is judged.
"""

from __future__ import annotations

import re

_BETWEEN = re.compile(r"[.!?]+[\"')\]]*(?=\s|$)|[;()\[\]{}\u2013\u2014\n]+|:(?=\s)|\s-+(?=\s)")
"""Signs between parts: the end of a sentence, brackets, dashes, semicolons, a colon before a blank."""
_MAX_PARTS = 8
"""Most parts of an answer, since each may cost a call; neighbours are joined if there are more."""


def parts_of(answer: str) -> tuple[str, ...]:
    """Return the sentences, further split at brackets, dashes, colons and semicolons, without these signs.

    Neighbours are joined if there are more than eight.
    """
    pieces = [part.strip() for part in _BETWEEN.split(answer)]
    parts = [part for part in pieces if any(c.isalnum() for c in part)]
    # Parts per joined part, rounded up.
    size = -(-len(parts) // _MAX_PARTS)
    return tuple(". ".join(parts[n : n + size]) for n in range(0, len(parts), size)) if parts else ()
