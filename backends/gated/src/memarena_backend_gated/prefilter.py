"""Patterns that are tried only where their words occur: most clauses hold none of the words that a pattern needs.

The words are derived from the pattern itself, so that a filtered pattern matches exactly what the plain one does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

# The standard library parses patterns with this module and offers its tree nowhere else.
_PARSER: Any = import_module("re._parser")
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
SHORTEST = 2
"""Characters that a word has at least: shorter ones are in nearly every text."""

Words = frozenset[str]
"""Alternatives: a text without any of them does not match."""


class Pattern:
    """A compiled pattern that looks for its words first. Methods are those of ``re.Pattern``."""

    __slots__ = ("_plain", "groupindex", "needs")

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._plain = re.compile(text, flags)
        self.groupindex = self._plain.groupindex
        self.needs: tuple[Words, ...] = tuple(sorted(words_needed(text, flags), key=len))
        """Of each of these sets, one word is in every text that matches, in lower case."""

    def may_match(self, text: str) -> bool:
        """Whether the words are there; where they are not, the pattern cannot match."""
        low = folded(text)
        for words in self.needs:  # loops, since a generator for each set costs more than the words
            for word in words:
                if word in low:
                    break
            else:
                return False
        return True

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text."""
        return self._plain.search(text) if self.may_match(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        """The match at the beginning of the text."""
        return self._plain.match(text) if self.may_match(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches, left to right."""
        return self._plain.finditer(text) if self.may_match(text) else iter(())

    def split(self, text: str) -> list[str]:
        """The parts between matches; the pattern has no groups."""
        return self._plain.split(text) if self.may_match(text) else [text]

    def sub(self, replacement: str, text: str) -> str:
        """The text with all matches replaced."""
        return self._plain.sub(replacement, text) if self.may_match(text) else text


def folded(text: str) -> str:
    """Lower case as IGNORECASE compares: a dotless or a dotted capital i counts as an i there, not in casefold."""
    return text.casefold().replace("ı", "i").replace("i\u0307", "i")


def words_needed(text: str, flags: re.RegexFlag) -> list[Words]:
    """Sets of words of which each match holds one."""
    return [words for words in _of_sequence(_PARSER.parse(text, flags)) if min(map(len, words)) >= SHORTEST]


def _of_sequence(parts: Iterable[tuple[Any, Any]]) -> Iterator[Words]:
    run = ""
    for code, argument in parts:
        name = str(code)
        if name == "LITERAL":
            run += folded(chr(argument))
            continue
        if name == "AT":  # a boundary has no width
            continue
        if run:
            yield frozenset({run})
            run = ""
        if name == "SUBPATTERN":
            yield from _of_sequence(argument[-1])
        elif name == "ATOMIC_GROUP" or (name == "ASSERT" and argument[0] > 0):
            yield from _of_sequence(argument if name == "ATOMIC_GROUP" else argument[1])
        elif name in _REPEATS and argument[0] > 0:
            yield from _of_sequence(argument[2])
        elif name == "BRANCH":
            yield from _of_branches(argument[1])
    if run:
        yield frozenset({run})


def _of_branches(branches: Iterable[Iterable[tuple[Any, Any]]]) -> Iterator[Words]:
    """The union of the most telling words of each branch; none where a branch needs none."""
    best = [
        max(_of_sequence(branch), key=lambda words: (min(map(len, words)), -len(words)), default=None)
        for branch in branches
    ]
    known = [words for words in best if words is not None]
    if len(known) == len(best):
        yield frozenset().union(*known)
