"""From a turn to a passage: what a reader is shown, what is indexed, and which tokens that makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memarena_backend import Day, Turn, line_of, setting_in_words

_TOKEN = re.compile(r"[A-Za-z0-9_]+")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, slots=True)
class Passage:
    """One turn as it can be found. ``when`` is the time in words, ``time`` the same as RFC 3339."""

    text: str
    when: str
    session_ids: tuple[str]
    turn_ids: tuple[str]
    time: str

    def tokens(self) -> list[str]:
        """Tokens that are indexed: the time in words, then the text with its header."""
        return tokenize(f"{self.when}\n{self.text}")


def tokenize(text: str) -> list[str]:
    """Runs of ASCII letters, digits and underscores, lower-cased; text in other scripts has none."""
    # Matched before lower-casing: some letters outside ASCII have an ASCII lower case.
    return [token.lower() for token in _TOKEN.findall(text)]


def passages_of(day: Day) -> Iterator[Passage]:
    """One passage for every turn of the day in which something was said, in the order of sessions and turns."""
    for session in day.sessions:
        setting = setting_in_words(session)
        header = f"{setting} " if setting else ""
        for turn in session.turns:
            if turn.text:
                yield Passage(
                    text=f"{header}{line_of(turn)}",
                    when=_in_words(turn),
                    session_ids=(session.session_id,),
                    turn_ids=(turn.turn_id,),
                    time=turn.said_at.isoformat(),
                )


def _in_words(turn: Turn) -> str:
    at = turn.said_at
    return f"{_WEEKDAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]} {at.year} {at.hour:02}:{at.minute:02}"
