"""Defines the names of months and weekdays, and the lengths of units of time, for all modules that read values."""

from __future__ import annotations

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNIT_DAYS = {
    "second": 1 / 86400,
    "minute": 1 / 1440,
    "hour": 1 / 24,
    "day": 1.0,
    "night": 1.0,
    "week": 7.0,
    "fortnight": 14.0,
    "month": 30.4,
    "year": 365.25,
    "decade": 3652.5,
}
"""Length of each unit in days."""
UNIT_SLACK = {"month": 1.6, "year": 1.0, "decade": 5.0}
"""Days by which a unit's length varies."""
_SHORT_UNITS = {"sec": "second", "min": "minute", "hr": "hour"}


def month_number(word: str) -> int:
    """Return 1 to 12, by the month's first three letters in any case. Raises ValueError for any other word."""
    return [name[:3] for name in MONTHS].index(word[:3].lower()) + 1


def weekday_number(word: str) -> int:
    """Return 0 (Monday) to 6, by the day's first three letters in any case. Raises ValueError for any other word."""
    return [name[:3] for name in WEEKDAYS].index(word[:3].lower())


def unit_name(word: str) -> str:
    """Return a unit of time in the singular and in full: ``Hrs`` is ``hour``; other words only lose their ``s``."""
    word = word.lower().removesuffix("s")
    return _SHORT_UNITS.get(word, word)
