"""Speeds up regular expressions by a cheap check: `re` runs only on texts with the words that any match contains.

Most clauses contain none of these words. They are derived from the pattern itself, so a prefiltered pattern matches
exactly what the plain one matches: ``(?:do not|never) tell`` requires "tell", and one of "do not" and "never".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

# The standard library parses patterns with this module and offers its tree nowhere else.
_PARSER: Any = import_module("re._parser")
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
MIN_WORD_LENGTH = 2
"""Least characters of a required word; nearly every text contains words of one character."""

Alternatives = frozenset[str]
"""Words in lower case; a text without any of them does not match."""


class PrefilteredPattern:
    """A compiled pattern that first checks for the words that a match requires. Methods are those of ``re.Pattern``."""

    __slots__ = ("_plain", "groupindex", "required")

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._plain = re.compile(text, flags)
        self.groupindex = self._plain.groupindex
        self.required: tuple[Alternatives, ...] = tuple(sorted(required_words(text, flags), key=len))
        """A text that matches contains at least one word of each of these sets."""

    def may_match(self, text: str) -> bool:
        """Whether the text contains a word of each required set; without them the pattern cannot match."""
        lower_case = fold_case(text)
        for alternatives in self.required:  # plain loops: a generator for each set takes longer than the comparison
            for word in alternatives:
                if word in lower_case:
                    break
            else:
                return False
        return True

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in the text."""
        return self._plain.search(text) if self.may_match(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        """Return the match at the beginning of the text."""
        return self._plain.match(text) if self.may_match(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return all matches, left to right."""
        return self._plain.finditer(text) if self.may_match(text) else iter(())

    def split(self, text: str) -> list[str]:
        """Return the parts between matches; the pattern must have no groups."""
        return self._plain.split(text) if self.may_match(text) else [text]

    def sub(self, replacement: str, text: str) -> str:
        """Return the text with all matches replaced."""
        return self._plain.sub(replacement, text) if self.may_match(text) else text


def fold_case(text: str) -> str:
    """Return the text in the lower case that re.IGNORECASE compares: it treats ı and İ as i, casefold does not."""
    return text.casefold().replace("ı", "i").replace("i\u0307", "i")


def required_words(text: str, flags: re.RegexFlag) -> list[Alternatives]:
    """Return sets of words such that every match of the pattern contains a word of each set."""
    of_pattern = _of_sequence(_PARSER.parse(text, flags))
    return [alternatives for alternatives in of_pattern if min(map(len, alternatives)) >= MIN_WORD_LENGTH]


def _of_sequence(nodes: Iterable[tuple[Any, Any]]) -> Iterator[Alternatives]:
    """Yield the required words of nodes in sequence, each a pair of its operation and the operation's argument.

    Arguments, as `re._parser` builds them: LITERAL a code point; SUBPATTERN a tuple that ends in the nodes inside;
    ATOMIC_GROUP the nodes inside; ASSERT (direction, nodes), direction 1 for lookahead; a repeat (min, max, nodes);
    BRANCH (None, the nodes of each branch).
    """
    literal = ""
    for operation, argument in nodes:
        name = str(operation)
        if name == "LITERAL":
            literal += fold_case(chr(argument))
            continue
        if name == "AT":  # a boundary has no width
            continue
        if literal:
            yield frozenset({literal})
            literal = ""
        if name == "SUBPATTERN":
            yield from _of_sequence(argument[-1])
        elif name == "ATOMIC_GROUP":
            yield from _of_sequence(argument)
        elif name == "ASSERT":
            direction, inside = argument
            if direction > 0:
                yield from _of_sequence(inside)
        elif name in _REPEATS:
            minimum, _, inside = argument
            if minimum > 0:
                yield from _of_sequence(inside)
        elif name == "BRANCH":
            yield from _of_branches(argument[1])
    if literal:
        yield frozenset({literal})


def _of_branches(branches: Iterable[Iterable[tuple[Any, Any]]]) -> Iterator[Alternatives]:
    """Yield the alternatives that cover all branches; nothing if a branch requires no word."""
    by_branch = [
        max(_of_sequence(branch), key=lambda words: (min(map(len, words)), -len(words)), default=None)
        for branch in branches
    ]
    covering = [alternatives for alternatives in by_branch if alternatives is not None]
    if len(covering) == len(by_branch):
        yield frozenset().union(*covering)
