"""Wordings from patterns: ``(a|b)`` is one of several, ``{name}`` is filled in from a subject. No chance enters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd

_ALTERNATIVES = re.compile(r"\(([^()]*\|[^()]*)\)")


def wordings(pattern: str) -> list[str]:
    """Wordings of a pattern in which every alternative occurs; which go together is fixed by a hash."""
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
    return list(dict.fromkeys(_tightened(text) for text in joined))


def pattern_texts(
    patterns: Iterable[str], subjects: Sequence[Mapping[str, str]], each: int, start: int = 0
) -> Iterator[tuple[str, Mapping[str, str], str, int]]:
    """Every pattern with ``each`` subjects a wording: pattern, subject, text, and how many wordings the pattern has."""
    position = start
    for pattern in patterns:
        all_wordings = wordings(pattern)
        for wording in all_wordings:
            for turn in range(each):
                subject = subjects[(position * 7 + turn * 5) % len(subjects)]
                yield pattern, subject, sentences(filled(wording, subject)), len(all_wordings)
            position += 1


def filled(wording: str, subject: Mapping[str, str]) -> str:
    """The wording with its names replaced."""
    for name, text in subject.items():
        wording = wording.replace("{" + name + "}", text)
    return wording


def sentences(text: str) -> str:
    """The text with a capital at the start of each sentence."""
    return re.sub(r"(^|[.?!] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)


def stable_hash(*parts: object) -> int:
    """A number that is the same on every machine."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16)


def _tightened(text: str) -> str:
    """One blank between words, none before a comma or a contraction."""
    return re.sub(r"\s+([,;]|'(?:d|ve|ll|m|re|s)\b)", r"\1", re.sub(r"\s+", " ", text)).strip()


def _step(column: Sequence[str]) -> int:
    """By how many alternatives to go on each time, so that two columns of one length do not march in step."""
    steps = [n for n in (1, 2, 3, 5, 7) if gcd(n, len(column)) == 1]
    return steps[stable_hash(*column) % len(steps)]
