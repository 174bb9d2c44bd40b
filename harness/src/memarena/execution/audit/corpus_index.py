"""Indexes the long passages of all lives of a data set, to recognise text in an item that was never ingested.

A backend that reads the data set's files, or another person's memory, returns words that its namespace never received.
:mod:`memarena.execution.audit.life_audit` looks for them with this index. (A life: all that one ego's memory ingests.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from memarena.execution.audit.life_index import LifeText, words_of

PASSAGE_WORDS = 12
"""Length of a passage in words, at which two people do not say the same by chance."""
_MAX_PASSAGES = 4_000_000
"""Maximum passages in the index (12 bytes each); of a larger data set, every second, fourth, … passage by its hash."""


class CorpusIndex:
    """An index of the passages of all turns and events of a data set, by hash."""

    def __init__(self, texts: Iterable[LifeText]) -> None:
        self._texts: list[LifeText] = []
        # Only hashes that are multiples of this number are stored: a sample that is the same in every text.
        self._every = 1
        hashes: list[int] = []
        numbers: list[int] = []
        for text in texts:
            self._texts.append(replace(text, text=""))
            text_hashes = [h for h in passages(words_of(text.text)) if not h % self._every]
            hashes += text_hashes
            numbers += [len(self._texts) - 1] * len(text_hashes)
            while len(hashes) > _MAX_PASSAGES:
                self._every *= 2
                pairs = [(h, n) for h, n in zip(hashes, numbers, strict=True) if not h % self._every]
                hashes, numbers = [h for h, _ in pairs], [n for _, n in pairs]
        order = np.argsort(np.array(hashes, np.int64), kind="stable")
        self._hashes: npt.NDArray[np.int64] = np.array(hashes, np.int64)[order]
        self._numbers: npt.NDArray[np.int32] = np.array(numbers, np.int32)[order]

    def sources(self, words: list[str]) -> Iterator[tuple[int, list[LifeText]]]:
        """Yield, for each passage of a text that the data set has too, its offset in words and its turns and events."""
        starts = [(start, h) for start, h in enumerate(passages(words)) if not h % self._every]
        hashes = np.array([h for _, h in starts], np.int64)
        first = np.searchsorted(self._hashes, hashes, "left")
        last = np.searchsorted(self._hashes, hashes, "right")
        for (start, _), low, high in zip(starts, first, last, strict=True):
            if high > low:
                yield start, [self._texts[number] for number in self._numbers[low:high]]


def passages(words: list[str]) -> list[int]:
    """Return the hashes of all passages of a text; they are comparable within one process only."""
    return [hash(tuple(words[start : start + PASSAGE_WORDS])) for start in range(len(words) - PASSAGE_WORDS + 1)]
