"""Names that a life knows: which of them a question mentions, and which sessions mention those."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from memarena_backend import Day, Session, line_of, setting_in_words
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")

Mask = NDArray[np.bool_]


class NameBook:
    """People, places and groups of one namespace, and the words of its sessions. Sessions are numbered from 0.

    A person goes by the whole name and by its first word. The owner is left out: everything is about the owner, so that
    the name would keep every session.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._sessions: list[str] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, day: Day) -> None:
        """Take in the sessions of a day."""
        owner = day.owner.participant_id
        for session in day.sessions:
            people = [p.display_name for p in session.participants if p.participant_id != owner]
            for name in (*people, *(person.split()[0] for person in people if person.split())):
                self._know(name)
            self._know(session.place)
            self._know(session.group)
            self._sessions.append(_normal(_words_of(session, people)))

    def mentioned(self, question: str) -> tuple[str, ...]:
        """Known names that stand in the question, in alphabetical order, normalised."""
        question_text = _normal([question])
        return tuple(sorted(name for name in self._names if name in question_text))

    def sessions_with(self, names: Iterable[str]) -> Mask:
        """For every session, whether one of the names stands in it; shape (sessions,)."""
        names_sought = tuple(names)
        return np.array([any(name in text for name in names_sought) for text in self._sessions], dtype=bool)

    def _know(self, name: str) -> None:
        if _WORD.search(name):
            self._names.add(_normal([name]))


def _words_of(session: Session, people: Iterable[str]) -> list[str]:
    return [*people, setting_in_words(session), *(line_of(turn) for turn in session.turns if turn.text)]


def _normal(texts: Iterable[str]) -> str:
    """Words in lower case between single spaces, a space at both ends, so that whole words are found as substrings."""
    return f" {' '.join(word.casefold() for text in texts for word in _WORD.findall(text))} "
