"""Generates wordings from patterns: ``(a|b)`` is a choice, ``{name}`` is filled in from a subject.

Choices are fixed by hashes, never random.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd

_ALTERNATIVES = re.compile(r"\(([^()]*\|[^()]*)\)")


def wordings(pattern: str) -> list[str]:
    """Return wordings of a pattern in which every alternative occurs; a hash fixes how they are combined."""
    pieces = _ALTERNATIVES.split(pattern)
    columns = [piece.split("|") if i % 2 else [piece] for i, piece in enumerate(pieces)]
    most = max(map(len, columns))
    if most == 1:
        return [pattern]
    count = most + min(most, 4)
    turned = [
        [column[(row * _step(column) + stable_hash(pattern, position)) % len(column)] for row in range(count)]
        for position, column in enumerate(columns)
    ]
    joined = ("".join(parts) for parts in zip(*turned, strict=True))
    return list(dict.fromkeys(_tidy_blanks(text) for text in joined))


def pattern_texts(
    patterns: Iterable[str], subjects: Sequence[Mapping[str, str]], each: int, start: int = 0
) -> Iterator[tuple[str, Mapping[str, str], str, int]]:
    """Yield pattern, subject, text and the pattern's number of wordings, with ``each`` subjects per wording."""
    position = start
    for pattern in patterns:
        all_wordings = wordings(pattern)
        for wording in all_wordings:
            for turn in range(each):
                subject = subjects[(position * 7 + turn * 5) % len(subjects)]
                yield pattern, subject, sentences(filled(wording, subject)), len(all_wordings)
            position += 1


def filled(wording: str, subject: Mapping[str, str]) -> str:
    """Return the wording with its names replaced."""
    for name, text in subject.items():
        wording = wording.replace("{" + name + "}", text)
    return wording


def sentences(text: str) -> str:
    """Return the text with a capital at the start of each sentence."""
    return re.sub(r"(^|[.?!] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)


def stable_hash(*parts: object) -> int:
    """Return a number that is the same on every machine."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16)


def _tidy_blanks(text: str) -> str:
    """Return the text with single blanks between words, and none before a comma, semicolon or contraction."""
    return re.sub(r"\s+([,;]|'(?:d|ve|ll|m|re|s)\b)", r"\1", re.sub(r"\s+", " ", text)).strip()


def _step(column: Sequence[str]) -> int:
    """Return how many alternatives to advance each time, so that columns of equal length are not aligned."""
    steps = [n for n in (1, 2, 3, 5, 7) if gcd(n, len(column)) == 1]
    return steps[stable_hash(*column) % len(steps)]
