"""What the talk states of who is what to whom: "my brother Tom", "Nina and I are friends", "she is not a friend"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memarena_backend_gated.audience import NameOf, kinds_of, same_name
from memarena_backend_gated.english import pattern, patterns
from memarena_backend_gated.records import Answer
from memarena_backend_gated.text import expanded

_PATTERNS, _PAIR, _DISTANT = patterns("ties"), pattern("pair"), pattern("distant")


class TieBook:
    """Ties between people of one namespace, by name, as the talk states them; the latest statement counts."""

    def __init__(self) -> None:
        self._ties: dict[str, dict[tuple[str, str], bool]] = {}

    def add(self, speaker: str, text: str, is_name: NameOf) -> None:
        """Read what a turn states of the people of its speaker."""
        whole = expanded(text)
        for compiled in _PATTERNS:
            for match in compiled.finditer(whole):
                if is_name(match.group("name").split()[0]):
                    negated = "not" in match.re.groupindex and bool(match.group("not"))
                    self._put(speaker, match.group("name"), match.group("group"), holds=not negated)
        for match in _PAIR.finditer(whole):
            if is_name(match.group("other").split()[0]) and is_name(match.group("name").split()[0]):
                self._put(match.group("other"), match.group("name"), match.group("group"), holds=not match.group("not"))
        for match in _DISTANT.finditer(whole):
            self._put(speaker, match.group("name") or match.group("other"), "friend", holds=False)

    def _put(self, one: str, other: str, group: str, *, holds: bool) -> None:
        for kind in kinds_of(group) or {group}:
            stated = self._ties.setdefault(kind, {})
            for pair in ((one, other), (other, one)):
                stated.pop(pair, None)  # the latest statement comes last
                stated[pair] = holds

    def have(self, person: str, other: str, kind: str) -> Answer:
        """Whether two people have a relation of a kind; UNKNOWN where the talk states nothing of it."""
        answer = Answer.UNKNOWN
        for one, second in self._ties.get(kind, {}):
            if _same(one, person) and _same(second, other):
                answer = Answer.YES if self._ties[kind][one, second] else Answer.NO
        return answer


def _same(stated: str, name: str) -> bool:
    return same_name(stated, name) or same_name(name, stated)


def names_in(names: Iterable[str]) -> frozenset[str]:
    """Words of display names that can be used for the person in a sentence."""
    return frozenset(
        word
        for name in names
        for word in re.findall(r"[^\W\d_][\w'-]*", re.sub(r"\(.*?\)", "", name))
        if word[0].isupper()
    )
