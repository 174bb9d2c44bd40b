"""Writes a day as a markdown file, with a map from its lines back to the turns.

MemSearch indexes the file, and a reader sees parts of it, so it has no ids; these are in the map.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from memarena_backend import Day, Session, Turn, date_in_words, setting_in_words

HEADING_LIMIT_CHARS = 240
"""Milvus keeps at most 1,024 bytes of a heading; 240 characters fit whatever their script."""


@dataclass(frozen=True, slots=True)
class TurnLines:
    """The lines of a turn in its file: ``first`` to ``last``, counted from 1, both included."""

    first: int
    last: int
    session_id: str
    turn_id: str
    said_at: str
    """Time of the turn, RFC 3339."""
    text: str = field(repr=False)
    """Speaker, time and the turn's text, before it is split into lines."""


@dataclass(frozen=True, slots=True)
class SessionLines:
    """The lines of a session in its file, with its heading: ``first`` to ``last``, counted from 1, both included."""

    first: int
    last: int
    session_id: str
    started_at: str
    """Time of the session's start, RFC 3339."""


@dataclass(frozen=True, slots=True)
class DayFile:
    """A day as markdown. Sessions and turns are in the order of their lines."""

    name: str
    text: str
    sessions: tuple[SessionLines, ...]
    turns: tuple[TurnLines, ...]

    def session_at(self, line: int) -> SessionLines:
        """Return the session of a line. Raises StopIteration for a line outside of all sessions."""
        return next(session for session in self.sessions if session.first <= line <= session.last)

    def between(self, start_line: int, end_line: int) -> tuple[TurnLines, ...]:
        """Return the turns that overlap the lines ``start_line`` to ``end_line``, both included, counted from 1."""
        return tuple(turn for turn in self.turns if turn.first <= end_line and turn.last >= start_line)


def day_file(day: Day) -> DayFile:
    """Return the day as markdown: a heading per session, and a paragraph per turn that begins with speaker and time."""
    lines = [f"# {date_in_words(day.date)}", ""]
    sessions: list[SessionLines] = []
    turns: list[TurnLines] = []
    for session in day.sessions:
        with_text = [turn for turn in session.turns if turn.text.strip()]
        if not with_text:
            continue
        start = len(lines) + 1
        lines += [f"## {heading_of(session)}", ""]
        for turn in with_text:
            first = len(lines) + 1
            lines += _paragraph(turn)
            said_at = turn.said_at.isoformat()
            text = _opening(turn) + turn.text
            turns.append(TurnLines(first, len(lines), session.session_id, turn.turn_id, said_at, text))
            lines.append("")
        sessions.append(SessionLines(start, len(lines), session.session_id, session.started_at.isoformat()))
    name = f"{day.index:06}-{day.date.isoformat()}.md"
    return DayFile(name, "\n".join(lines), tuple(sessions), tuple(turns))


def heading_of(session: Session) -> str:
    """Return the heading of a session: its date and time, and its setting if it is known."""
    start, end = session.started_at, session.ended_at
    words = f"{date_in_words(start)}, {start:%H:%M} to {end:%H:%M}"
    setting = _one_line(setting_in_words(session))
    return f"{words} {setting}".strip()[:HEADING_LIMIT_CHARS].rstrip()


def to_json(file: DayFile) -> str:
    """Return the map of a file's lines as JSON, to be stored next to the file."""
    sessions = [[session.first, session.last, session.session_id] for session in file.sessions]
    turns = [[turn.first, turn.last, turn.turn_id, turn.said_at] for turn in file.turns]
    content = {"version": 1, "sessions": sessions, "turns": turns}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _paragraph(turn: Turn) -> list[str]:
    # A line of a turn must not look like a heading, at which MemSearch would cut, so continuation lines are indented.
    # splitlines() also breaks at characters that are not line breaks in markdown, so only \r\n, \r and \n are used.
    first, *more = turn.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [_opening(turn) + first, *(f"  {line}" if line.strip() else "" for line in _without_last_blanks(more))]


def _opening(turn: Turn) -> str:
    return f"**{_one_line(turn.speaker.display_name)}** {turn.said_at:%H:%M}: "


def _without_last_blanks(lines: Iterable[str]) -> list[str]:
    result = list(lines)
    while result and not result[-1].strip():
        result.pop()
    return result


def _one_line(text: str) -> str:
    return " ".join(text.split())
