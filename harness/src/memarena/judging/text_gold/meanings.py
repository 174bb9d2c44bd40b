"""Reduces words to their meaning: stems of regular and irregular forms, and how near two stems are to each other."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from memarena_dataset.values.word_lists import word_list
from memarena_dataset.values.words import stem, words

from memarena.judging.tables import data_file

TABLE = "word_relations.v1.txt.gz"
"""Synonyms, derived forms and broader words; :func:`_relations` has its format."""
_LEAST_PREFIX = 5
"""Least common letters at the beginning of two forms of one word."""
SAME, NEAR = 1.0, 0.5
"""Results of :func:`nearness` for the same and for a near meaning."""


@dataclass(frozen=True)
class _Relations:
    """The table of word relations: stems of the same and of near meaning by stem, and bases of irregular forms."""

    same: Mapping[str, frozenset[str]]
    near: Mapping[str, frozenset[str]]
    base_of: Mapping[str, str]


def base(word: str) -> str:
    """Return the stem of a word in lower case; of an irregular form, the stem of its base (``went``: ``go``)."""
    return stem(_relations().base_of.get(word, word))


def bases(text: str) -> list[str]:
    """Return the stems of the content words of a text, in order."""
    return list(_bases(text))


@lru_cache(maxsize=16_384)
def _bases(text: str) -> tuple[str, ...]:
    grammar = word_list("function_words.v1.txt")
    return tuple(base(word) for word in words(text) if word not in grammar)


@lru_cache(maxsize=65_536)
def nearness(a: str, b: str) -> float:
    """Return 1 for the same stem, a synonym or a derived form, 0.5 for a broader or similar word, else 0."""
    if a == b:
        return SAME
    table = _relations()
    if b in table.same.get(a, ()) or a in table.same.get(b, ()):
        return SAME
    if min(len(a), len(b)) >= _LEAST_PREFIX and a[:_LEAST_PREFIX] == b[:_LEAST_PREFIX] and _alike(a, b):
        return SAME
    return NEAR if b in table.near.get(a, ()) or a in table.near.get(b, ()) else 0.0


def _alike(a: str, b: str) -> bool:
    """Whether two stems with the same beginning are forms of one word: they differ only by an ending."""
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    return shared >= 0.7 * max(len(a), len(b))


@cache
def _relations() -> _Relations:
    """Read the table: lines ``> form base``, ``= stem same-stems…`` and ``~ stem near-stems…``."""
    same: dict[str, frozenset[str]] = {}
    near: dict[str, frozenset[str]] = {}
    base_of: dict[str, str] = {}
    for line in gzip.decompress(data_file(TABLE)).decode().splitlines():
        kind, word, *others = line.split()
        if kind == ">":
            base_of[word] = others[0]
        elif kind in "=~":
            (same if kind == "=" else near)[word] = frozenset(others)
    return _Relations(same, near, base_of)
