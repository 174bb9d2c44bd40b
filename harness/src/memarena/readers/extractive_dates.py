"""Days that a sentence means, seen from the day on which it was said, for the extractive reader."""

from __future__ import annotations

import re
from datetime import date, timedelta

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_UNITS = {"day": 1, "week": 7}

_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_WRITTEN = re.compile(r"\b(\d{1,2}) ([A-Z][a-z]+),? (\d{4})\b")
_MONTH = "|".join(f"{month}|{month[:3]}" for month in MONTHS)
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.? (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}}))?")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b(?:,? (\d{{4}}))?")
_WEEKDAY = re.compile(rf"\b(?:(next|last|coming) )?({'|'.join(WEEKDAYS)})\b")
_AGO = re.compile(rf"\b(\d+|an?|{'|'.join(_COUNTS[1:])}) (day|week)s? ago\b")
_AHEAD = re.compile(r"\b(?:will|going to|next|coming|upcoming|planned?|hope to)\b|'ll\b")


def day_of(time: str) -> date | None:
    """The day of a time as a prompt shows it ("Tuesday 2025-01-07 18:03", "7 May, 2023"); None if it names none."""
    if found := _ISO.search(time):
        return _date(int(found[1]), int(found[2]), int(found[3]))
    if (found := _WRITTEN.search(time)) and found[2].lower() in MONTHS:
        return _date(int(found[3]), MONTHS.index(found[2].lower()) + 1, int(found[1]))
    return None


def written(day: date) -> str:
    """``January 7, 2025``."""
    return f"{MONTHS[day.month - 1].capitalize()} {day.day}, {day.year}"


def day_meant(text: str, said_on: date) -> date | None:
    """The first day that a sentence names, in words that need its own day ("yesterday") or not ("March 14")."""
    found = [place for place in (*_near(text.lower(), said_on), *_dated(text.lower(), said_on)) if place[1] is not None]
    return min(found, key=lambda place: place[0], default=(0, None))[1]


def _near(lowered: str, said_on: date) -> list[tuple[int, date | None]]:
    found: list[tuple[int, date | None]] = []
    for word, back in (
        ("day before yesterday", 2), ("yesterday", 1), ("last night", 1), ("today", 0), ("this morning", 0),
        ("tonight", 0), ("tomorrow", -1),
    ):  # fmt: skip
        if (at := lowered.find(word)) >= 0:
            found.append((at, said_on - timedelta(days=back)))
            if back == 2:
                break  # it holds "yesterday", too
    for match in _AGO.finditer(lowered):
        count = 1 if match[1] in ("a", "an") else _COUNTS.index(match[1]) if match[1] in _COUNTS else int(match[1])
        if count * _UNITS[match[2]] < 10_000:
            found.append((match.start(), said_on - timedelta(days=count * _UNITS[match[2]])))
    for match in _WEEKDAY.finditer(lowered):
        ahead = (WEEKDAYS.index(match[2]) - said_on.weekday()) % 7 or 7
        coming = match[1] in ("next", "coming") or (match[1] is None and _AHEAD.search(lowered))
        found.append((match.start(), said_on + timedelta(days=ahead if coming else ahead - 7 if ahead < 7 else -7)))
    return found


def _dated(lowered: str, said_on: date) -> list[tuple[int, date | None]]:
    found: list[tuple[int, date | None]] = []
    for match in _ISO.finditer(lowered):
        found.append((match.start(), _date(int(match[1]), int(match[2]), int(match[3]))))
    for match in _MONTH_DAY.finditer(lowered):
        found.append((match.start(), _nearest(match[1], int(match[2]), match[3], said_on)))
    for match in _DAY_MONTH.finditer(lowered):
        found.append((match.start(), _nearest(match[2], int(match[1]), match[3], said_on)))
    return found


def _nearest(month: str, day: int, year: str | None, said_on: date) -> date | None:
    number = next(place for place, name in enumerate(MONTHS, start=1) if name.startswith(month))
    years = [int(year)] if year else [said_on.year - 1, said_on.year, said_on.year + 1]
    days = [found for each in years if (found := _date(each, number, day))]
    return min(days, key=lambda found: abs((found - said_on).days), default=None)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
