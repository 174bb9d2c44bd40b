"""Relations between people as a conversation states them: "my brother Tom", "Nina and I are friends".

The gate asks it whether an asker is, say, a friend of the owner when a wish says "not to my friends". The patterns are
in ``english.toml``: ``ties`` for relations of the speaker, ``pair`` for two others ("Nina and Tom are friends"),
``distant`` for people whom the speaker hardly knows ("I barely know Nina"), which is stated as not being a friend.
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
    """Relations between people of one namespace, by name, as the talk states them; the latest statement counts."""

    def __init__(self) -> None:
        self._ties: dict[str, dict[tuple[str, str], bool]] = {}
        """By kind (``friend``), two names in both orders, and whether the relation holds or was denied."""

    def add(self, speaker: str, text: str, is_name: NameOf) -> None:
        """Read a turn.

        Args:
            speaker: name of whoever says it.
            text: of the turn.
            is_name: whether a capitalised word is a name of a person.
        """
        whole = expanded(text)
        for compiled in _PATTERNS:
            for match in compiled.finditer(whole):
                if is_name(match.group("name").split()[0]):
                    negated = "not" in match.re.groupindex and bool(match.group("not"))
                    self._set(speaker, match.group("name"), match.group("group"), holds=not negated)
        for match in _PAIR.finditer(whole):
            if is_name(match.group("other").split()[0]) and is_name(match.group("name").split()[0]):
                self._set(match.group("other"), match.group("name"), match.group("group"), holds=not match.group("not"))
        for match in _DISTANT.finditer(whole):
            self._set(speaker, match.group("name") or match.group("other"), "friend", holds=False)

    def _set(self, first: str, second: str, group: str, *, holds: bool) -> None:
        """``group`` is the noun of the text (``mates``), which may name several kinds."""
        for kind in kinds_of(group) or {group}:
            statements = self._ties.setdefault(kind, {})
            for pair in ((first, second), (second, first)):
                statements.pop(pair, None)  # the latest statement comes last
                statements[pair] = holds

    def have(self, person: str, other: str, kind: str) -> Answer:
        """Whether two people have a relation of a kind; UNKNOWN where the talk states nothing of it."""
        answer = Answer.UNKNOWN
        for (first, second), holds in self._ties.get(kind, {}).items():
            if _same(first, person) and _same(second, other):
                answer = Answer.YES if holds else Answer.NO
        return answer


def _same(spoken_name: str, name: str) -> bool:
    """Whether two names may be the same person's: ``Tom`` and ``Tom Baker``, whichever is the shorter."""
    return same_name(spoken_name, name) or same_name(name, spoken_name)


def names_in(names: Iterable[str]) -> frozenset[str]:
    """Words of display names that can be used for the person in a sentence."""
    return frozenset(
        word
        for name in names
        for word in re.findall(r"[^\W\d_][\w'-]*", re.sub(r"\(.*?\)", "", name))
        if word[0].isupper()
    )
