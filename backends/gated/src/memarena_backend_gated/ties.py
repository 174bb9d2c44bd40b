"""Collects relations between people that turns state: "my brother Tom", "Nina and I are friends".

When a wish says "not to my friends", the gate looks up here whether the asker is a friend of the speaker. The patterns
are in ``english.toml``: ``ties`` for relations of the speaker, ``pair`` for two others ("Nina and Tom are friends"),
``distant`` for people whom the speaker hardly knows ("I barely know Nina"), who count as no friends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memarena_backend_gated.audience import NameOf, kinds_of, same_name
from memarena_backend_gated.english import pattern, patterns
from memarena_backend_gated.records import Answer
from memarena_backend_gated.text import expanded

_PATTERNS, _PAIR, _DISTANT = patterns("ties"), pattern("pair"), pattern("distant")


class TieBook:
    """Relations between people of one namespace, by name; the latest statement of a relation counts."""

    def __init__(self) -> None:
        self._ties: dict[str, dict[tuple[str, str], bool]] = {}
        """By kind (``friend``), then by a pair of names in both orders: whether the relation holds or is denied."""

    def add(self, speaker: str, text: str, is_name: NameOf) -> None:
        """Add the relations that a turn states.

        Args:
            speaker: display name of the turn's speaker.
            text: the turn's text.
            is_name: tells whether a capitalised word is part of a person's name.
        """
        long_form = expanded(text)
        for compiled in _PATTERNS:
            for match in compiled.finditer(long_form):
                if is_name(match.group("name").split()[0]):
                    negated = "not" in match.re.groupindex and bool(match.group("not"))
                    self._set(speaker, match.group("name"), match.group("group"), holds=not negated)
        for match in _PAIR.finditer(long_form):
            if is_name(match.group("other").split()[0]) and is_name(match.group("name").split()[0]):
                self._set(match.group("other"), match.group("name"), match.group("group"), holds=not match.group("not"))
        for match in _DISTANT.finditer(long_form):
            self._set(speaker, match.group("name") or match.group("other"), "friend", holds=False)

    def _set(self, first: str, second: str, group: str, *, holds: bool) -> None:
        """Store a relation. ``group`` is the noun in the text (``mates``), which may name several kinds."""
        for kind in kinds_of(group) or {group}:
            statements = self._ties.setdefault(kind, {})
            for pair in ((first, second), (second, first)):
                statements.pop(pair, None)  # the latest statement comes last
                statements[pair] = holds

    def have(self, person: str, other: str, kind: str) -> Answer:
        """Whether two people have a relation of a kind; UNKNOWN if no turn states or denies it."""
        answer = Answer.UNKNOWN
        for (first, second), holds in self._ties.get(kind, {}).items():
            if _same(first, person) and _same(second, other):
                answer = Answer.YES if holds else Answer.NO
        return answer


def _same(spoken_name: str, name: str) -> bool:
    """Whether two names may belong to the same person, such as ``Tom`` and ``Tom Baker``, in either order."""
    return same_name(spoken_name, name) or same_name(name, spoken_name)


def names_in(names: Iterable[str]) -> frozenset[str]:
    """Return the capitalised words of display names, by which a sentence may name a person; parentheses are skipped."""
    return frozenset(
        word
        for name in names
        for word in re.findall(r"[^\W\d_][\w'-]*", re.sub(r"\(.*?\)", "", name))
        if word[0].isupper()
    )
