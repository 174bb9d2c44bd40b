"""Collects the names of people, places and groups in a namespace, and tells which sessions mention those of a question.

The option `entities` uses this to search only such sessions.
"""

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

    A person is known by the whole name and by its first word. The owner's name is left out: every session is about the
    owner, so the name would select all of them.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._sessions: list[str] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, day: Day) -> None:
        """Add the names and words of a day's sessions."""
        owner = day.owner.participant_id
        for session in day.sessions:
            people = [p.display_name for p in session.participants if p.participant_id != owner]
            for name in (*people, *(person.split()[0] for person in people if person.split())):
                self._know(name)
            self._know(session.place)
            self._know(session.group)
            self._sessions.append(_normal(_words_of(session, people)))

    def mentioned(self, question: str) -> tuple[str, ...]:
        """Return the known names that the question contains, normalised as by `_normal`, in alphabetical order."""
        question_text = _normal([question])
        return tuple(sorted(name for name in self._names if name in question_text))

    def sessions_with(self, names: Iterable[str]) -> Mask:
        """Return for each session whether it contains one of the (normalised) names; shape (sessions,)."""
        names_sought = tuple(names)
        return np.array([any(name in text for name in names_sought) for text in self._sessions], dtype=bool)

    def _know(self, name: str) -> None:
        if _WORD.search(name):
            self._names.add(_normal([name]))


def _words_of(session: Session, people: Iterable[str]) -> list[str]:
    return [*people, setting_in_words(session), *(line_of(turn) for turn in session.turns if turn.text)]


def _normal(texts: Iterable[str]) -> str:
    """Return the words case-folded between single spaces, with a space at both ends.

    A substring test then matches whole words only.
    """
    return f" {' '.join(word.casefold() for text in texts for word in _WORD.findall(text))} "
