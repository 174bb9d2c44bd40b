"""Turns a day into passages: the text that a reader is shown, the tokens that are indexed, and the sources of both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memarena_backend import Day, Session, line_of, moment_in_words, setting_in_words

from memarena_backend_bm25.settings import PassageKind

_TOKEN = re.compile(r"[A-Za-z0-9_]+|[^\W\x00-\x7f]+")
"""A token: a run of ASCII letters, digits and underscores, or a run of other letters: "Müller" gives M, ü and ller."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The unit of search: one turn, or one whole session (`BM25_PASSAGE`)."""

    text: str
    session_ids: tuple[str]
    turn_ids: tuple[str, ...]
    at: datetime
    """Time of the turn; for a session, its start."""
    who: str
    """Display name of the speaker; for a session, of all its speakers, separated by commas."""
    day: int
    at_text: str
    """``at`` in ISO format, as items return it."""
    session: int
    """Index of the session within the namespace, in the order of ingestion."""

    @property
    def when(self) -> str:
        """Return the time in words."""
        return moment_in_words(self.at)

    @property
    def header(self) -> str:
        """Return one line for the reader on where the passage comes from, with numbers in place of opaque ids."""
        return f"(conversation {self.session + 1}, day {self.day + 1}, {self.who}, {self.when})"

    def tokens(self) -> list[str]:
        """Return the tokens to index: of the time in words, then of the text."""
        return tokenize(f"{self.when}\n{self.text}")


def tokenize(text: str) -> list[str]:
    """Return the runs of ASCII letters, digits and underscores, and those of non-ASCII word characters, lower-cased."""
    # Matched before lower-casing: some letters outside ASCII have an ASCII lower case.
    return [token.lower() for token in _TOKEN.findall(text)]


def passages_of(day: Day, kind: PassageKind = "turn", first_session: int = 0) -> Iterator[Passage]:
    """Yield the passages of a day, in the order of sessions and turns; turns without text are skipped.

    ``first_session`` is the index of the day's first session within the namespace.
    """
    for number, session in enumerate(day.sessions, start=first_session):
        if kind == "turn":
            yield from _turns(session, day.index, number)
        elif any(turn.text for turn in session.turns):
            yield _whole(session, day.index, number)


def _turns(session: Session, day: int, number: int) -> Iterator[Passage]:
    """Yield a passage for each turn with text; ``number`` is the session's index within the namespace."""
    setting = setting_in_words(session)
    opening = f"{setting} " if setting else ""
    for turn in session.turns:
        if turn.text:
            yield Passage(
                text=f"{opening}{line_of(turn)}",
                session_ids=(session.session_id,),
                turn_ids=(turn.turn_id,),
                at=turn.said_at,
                at_text=turn.said_at.isoformat(),
                who=turn.speaker.display_name,
                day=day,
                session=number,
            )


def _whole(session: Session, day: int, number: int) -> Passage:
    turns = [turn for turn in session.turns if turn.text]
    lines = [setting_in_words(session), *map(line_of, turns)]
    return Passage(
        text="\n".join(line for line in lines if line),
        session_ids=(session.session_id,),
        turn_ids=tuple(turn.turn_id for turn in turns),
        at=session.started_at,
        at_text=session.started_at.isoformat(),
        who=", ".join(dict.fromkeys(turn.speaker.display_name for turn in turns)),
        day=day,
        session=number,
    )
