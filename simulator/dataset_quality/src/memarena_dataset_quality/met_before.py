"""Measures how many sentences that an ego hears or says repeat earlier ones literally, except for names and numbers.

Texts drawn from phrase banks repeat themselves sooner than people do, so ``measures.py`` has a bar for this share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memarena_dataset_quality.tokenization import sentences
from memarena_dataset_quality.world import World

LEAST_WORDS = 4
"""Minimum words of a sentence that counts: all people repeat shorter ones ("I see.")."""
_WORD = re.compile(r"[A-Za-z0-9':]+")
_FIRST_PERSON = re.compile(r"I(?:'|$)")


@dataclass(frozen=True, slots=True)
class MetBefore:
    """Number of sentences of four words or more over all egos, and how many of them the same ego had met before."""

    sentences: int
    repeated: int

    @property
    def share(self) -> float:
        """Return repeated sentences as a share of all, from 0 to 1."""
        return self.repeated / self.sentences


def met_before(worlds: Sequence[World], days: float | None) -> MetBefore | None:
    """Count over every ego's turns of the first ``days`` days (None: of all days).

    None if no world has that many days, or no sentence is long enough.
    """
    total = repeated = 0
    for world in worlds:
        if days is not None and world.day_count < days:
            continue
        for ego, turns in world.projections.items():
            if ego.startswith("assistant_"):
                continue
            seen: set[tuple[str, ...]] = set()
            for turn in turns:
                if days is not None and turn.timestamp >= days:
                    continue
                for sentence in map(masked, sentences(turn.text)):
                    if len(sentence) >= LEAST_WORDS:
                        total += 1
                        repeated += sentence in seen
                        seen.add(sentence)
    return MetBefore(total, repeated) if total else None


def masked(sentence: str) -> tuple[str, ...]:
    """Return the words of a sentence in lower case; ``#`` for words with a digit, ``@`` for names (inner capitals)."""
    return tuple(
        "#"
        if any(char.isdigit() for char in word)
        else "@"
        if number and word[0].isupper() and not _FIRST_PERSON.match(word)
        else word.lower()
        for number, word in enumerate(_WORD.findall(sentence))
    )
