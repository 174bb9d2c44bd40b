"""Chooses distractors: sessions that Oracle returns with the evidence although they do not hold the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from memarena_backend import Item, tokens_by_bytes

DEFAULT_BUDGET_TOKENS = 8_192
"""Tokens for evidence and distractors together if neither the option nor the call sets a limit."""


def recent(candidates: Sequence[Item], room_tokens: int) -> list[int]:
    """Return the indices of the latest candidates, latest first, up to the first that does not fit.

    ``candidates`` are in order of time.
    """
    chosen: list[int] = []
    for position in reversed(range(len(candidates))):
        room_tokens -= tokens_by_bytes(candidates[position].text)
        if room_tokens < 0:
            break
        chosen.append(position)
    return chosen


def draw(candidates: Sequence[Item], room_tokens: int, count: int, seed: int, question: str) -> list[int]:
    """Return the indices of at most ``count`` candidates, drawn uniformly, in the order of the draw.

    The draw depends on seed and question alone, so that all runs draw the same. Candidates that do not fit are skipped.
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
    """Yield each index below ``size`` once, in an order that does not depend on the version of Python."""

    def key_of(position: int) -> bytes:
        return hashlib.sha256(f"{seed}\x00{position}\x00{question}".encode("utf-8", "surrogatepass")).digest()

    yield from sorted(range(size), key=key_of)
