"""Words that mean nearly the same, or define each other, by stem, for the extractive reader."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files

from memarena.readers.extractive_stems import stem

RELATED_FILE = "lexicons/related.v1.txt.gz"
"""Made from WordNet by scripts/related_words.py: a stem and its related stems per line."""
KINDRED_FILE = "lexicons/kindred.v1.txt"
"""Groups of words, one per line, that are all related."""


@cache
def _table() -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    """Related stems by stem, and stems by what they are related to."""
    text = gzip.decompress(files(__package__).joinpath(RELATED_FILE).read_bytes()).decode()
    there = {}
    back: defaultdict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        word, *others = line.split()
        there[word] = frozenset(others)
        for other in others:
            back[other].append(word)
    for group in _groups():
        for word in group:
            there[word] = there.get(word, frozenset()) | group - {word}
    return there, {word: frozenset(others) for word, others in back.items()}


def _groups() -> Iterator[frozenset[str]]:
    for line in files(__package__).joinpath(KINDRED_FILE).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield frozenset(filter(None, map(stem, line.split())))


def related(word: str, among: Iterable[str]) -> frozenset[str]:
    """Those of the stems that are related to a stem, either way."""
    there, back = _table()
    known = there.get(word, frozenset()) | back.get(word, frozenset())
    return known.intersection(among)
