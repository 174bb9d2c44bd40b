"""Sessions that are shown beside the evidence although they do not answer: which ones, and how many fit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from memarena_backend import Item, tokens_by_bytes

DEFAULT_BUDGET_TOKENS = 8_192
"""What evidence and distractors may take together where nobody says otherwise."""


def recent(candidates: Sequence[Item], room_tokens: int) -> list[int]:
    """Positions of the latest candidates that fit, latest first; the first that does not fit ends it.

    ``candidates`` stand in the order of time.
    """
    chosen: list[int] = []
    for position in reversed(range(len(candidates))):
        room_tokens -= tokens_by_bytes(candidates[position].text)
        if room_tokens < 0:
            break
        chosen.append(position)
    return chosen


def draw(candidates: Sequence[Item], room_tokens: int, count: int, seed: int, question: str) -> list[int]:
    """Positions of at most ``count`` candidates that fit, drawn uniformly, in the order of the draw.

    The draw follows from seed and question, so that another run draws the same. A candidate that does not fit any more
    is passed over.
    """
    chosen: list[int] = []
    for position in _shuffled(len(candidates), seed, question):
        size = tokens_by_bytes(candidates[position].text)
        if len(chosen) == count:
            break
        if size <= room_tokens:
            room_tokens -= size
            chosen.append(position)
    return chosen


def _shuffled(size: int, seed: int, question: str) -> Iterator[int]:
    """Every position once, in an order that any version of Python gives alike."""

    def key_of(position: int) -> bytes:
        return hashlib.sha256(f"{seed}\x00{position}\x00{question}".encode("utf-8", "surrogatepass")).digest()

    yield from sorted(range(size), key=key_of)
