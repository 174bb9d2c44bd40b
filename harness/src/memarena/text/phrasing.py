"""Looks for the phrases of a lexicon in words, quickly: only those are tried that begin with the word in hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from memarena.text.lexicon import phrase_patterns
from memarena.text.words import words


@dataclass(frozen=True)
class Found:
    """A phrase found: its words, and how many words stand before it."""

    text: str
    at: int


@lru_cache(maxsize=16_384)
def find_phrases(name: str, section: str, text: str) -> tuple[Found, ...]:
    """Every place in a text where a phrase of a section stands, the first phrase that fits at each word."""
    # Clauses and sentences are looked at again for every value that stands in them.
    spoken = words(text)
    by_opening = _by_opening(name, section)
    return tuple(_found(spoken, by_opening)) if any(w in by_opening for w in spoken) else ()


def _found(spoken: list[str], by_opening: Mapping[str, re.Pattern[str]]) -> Iterator[Found]:
    joined = " ".join(spoken) + " "
    start = 0
    for at, word in enumerate(spoken):
        pattern = by_opening.get(word)
        match = pattern.match(joined, start) if pattern else None
        if match:
            yield Found(match.group().strip(), at)
        start += len(word) + 1


@cache
def _by_opening(name: str, section: str) -> Mapping[str, re.Pattern[str]]:
    """The section's phrases as one pattern for each word that can open them."""
    opened: dict[str, list[str]] = {}
    for openings, pattern in phrase_patterns(name, section):
        for word in openings:
            opened.setdefault(word, []).append(pattern)
    return {word: re.compile("|".join(f"(?:{p})" for p in patterns)) for word, patterns in opened.items()}
