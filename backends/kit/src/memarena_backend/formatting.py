"""Formats parts of a session as text; shared, so that backends differ in what they retrieve and not in style."""

from __future__ import annotations

from datetime import date, datetime

from memarena_backend.records import Session, Turn

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


def date_in_words(day: date) -> str:
    """Return a date in English, independent of the locale, for example ``Friday 3 January 2025``."""
    return f"{_WEEKDAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def moment_in_words(at: datetime) -> str:
    """Return date and minute in the time's own offset, for example ``Friday 3 January 2025 09:15``."""
    return f"{date_in_words(at)} {at.hour:02}:{at.minute:02}"


def setting_in_words(session: Session) -> str:
    """Return modality, place and group of a session, for example ``[face to face, at Luna Café, with Book club]``.

    Empty if none is known. The time is left out, since it is in an item's ``time``.
    """
    parts = []
    if session.modality:
        parts.append(session.modality.replace("_", " "))
    if session.place:
        parts.append(f"at {session.place}")
    if session.group:
        parts.append(f"with {session.group}")
    return f"[{', '.join(parts)}]" if parts else ""


def line_of(turn: Turn) -> str:
    """Return a turn as a line of a script: ``speaker: text``."""
    return f"{turn.speaker.display_name}: {turn.text}"
