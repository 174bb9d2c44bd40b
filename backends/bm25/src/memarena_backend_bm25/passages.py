"""From a day to passages: what a reader is shown, what is indexed, which tokens that makes, and where it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memarena_backend import Day, Session, line_of, moment_in_words, setting_in_words

from memarena_backend_bm25.settings import PassageKind

_TOKEN = re.compile(r"[A-Za-z0-9_]+|[^\W\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class Passage:
    """One turn, or one session, as it can be found."""

    text: str
    session_ids: tuple[str]
    turn_ids: tuple[str, ...]
    at: datetime
    """When it was said; of a session, when it began."""
    who: str
    """Who said it; of a session, everybody who spoke, separated by commas."""
    day: int
    at_text: str
    """The same as items carry it."""
    session: int
    """Number of the session within the namespace, from 0, in the order in which sessions came."""

    @property
    def when(self) -> str:
        """The time in words."""
        return moment_in_words(self.at)

    @property
    def header(self) -> str:
        """Where the passage comes from, as a reader may be shown it; ids mean nothing to a reader, numbers do."""
        return f"(conversation {self.session + 1}, day {self.day + 1}, {self.who}, {self.when})"

    def tokens(self) -> list[str]:
        """Tokens that are indexed: the time in words, then the text."""
        return tokenize(f"{self.when}\n{self.text}")


def tokenize(text: str) -> list[str]:
    """Runs of ASCII letters, digits and underscores, and runs of letters and digits outside ASCII, lower-cased."""
    # Matched before lower-casing: some letters outside ASCII have an ASCII lower case.
    return [token.lower() for token in _TOKEN.findall(text)]


def passages_of(day: Day, kind: PassageKind = "turn", first_session: int = 0) -> Iterator[Passage]:
    """The passages of a day, in the order of sessions and turns; nothing is made of a turn without a word.

    ``first_session`` is the number of the day's first session within the namespace.
    """
    for number, session in enumerate(day.sessions, start=first_session):
        if kind == "turn":
            yield from _turns(session, day.index, number)
        elif any(turn.text for turn in session.turns):
            yield _whole(session, day.index, number)


def _turns(session: Session, day: int, number: int) -> Iterator[Passage]:
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
