"""Provides counter-based random number streams, each keyed by its purpose.

A stream is the SHAKE-128 output of (key, block counter), so a draw depends on the key and its position in the stream
and on nothing else: not on other streams, the process, the Python version or the order in which streams are made. A
draw that is added, removed or moved within a stream changes the worlds of every seed: ``GENERATOR_VERSION`` in
``output/rows.py`` has to go up.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_BLOCK_WORDS = 256
_UNPACK = struct.Struct(f"<{_BLOCK_WORDS}I").unpack
_TWO32 = 4294967296.0


class Stream:
    """Random draws from the stream that belongs to ``parts`` (for example seed, day, entity, purpose)."""

    __slots__ = ("_at", "_block", "_key", "_words")

    def __init__(self, *parts: str | int) -> None:
        name = "\x1f".join(f"{type(part).__name__[0]}{part}" for part in parts)
        self._key = hashlib.blake2b(name.encode(), digest_size=32).digest()
        self._block = 0
        self._words: tuple[int, ...] = ()
        self._at = _BLOCK_WORDS

    def word(self) -> int:
        """Return the next 32 random bits."""
        at = self._at
        if at == _BLOCK_WORDS:
            raw = hashlib.shake_128(self._key + self._block.to_bytes(8, "little")).digest(4 * _BLOCK_WORDS)
            self._words = _UNPACK(raw)
            self._block += 1
            at = 0
        self._at = at + 1
        return self._words[at]

    def below(self, n: int) -> int:
        """Return an integer in [0, n); the bias is below n / 2^32."""
        return (self.word() * n) >> 32

    def unit(self) -> float:
        """Return a float in [0, 1)."""
        return self.word() / _TWO32

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.word() < probability * _TWO32

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""
        return items[(self.word() * len(items)) >> 32]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """Return one of ``items``, by weight."""
        remaining = self.unit() * math.fsum(weights)
        for item, weight in zip(items, weights, strict=True):
            remaining -= weight
            if remaining < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return ``items`` in random order (Fisher and Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """Return ``n`` different items (all of them if there are fewer), in random order."""
        out = list(items)
        n = min(n, len(out))
        for i in range(n):
            j = i + self.below(len(out) - i)
            out[i], out[j] = out[j], out[i]
        return out[:n]

    def bell(self) -> float:
        """Return a roughly normal number with mean 0 and standard deviation 1: the sum of twelve uniforms less six."""
        return sum(self.word() for _ in range(12)) / _TWO32 - 6.0
