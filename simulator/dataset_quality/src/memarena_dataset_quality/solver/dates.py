"""Finds the calendar day that a sentence about a past event means, from the day on which it was spoken."""

from __future__ import annotations

import re
from datetime import date, timedelta

from memarena_dataset.values.calendar import WEEKDAYS
from memarena_dataset.values.generous import explicit_dates_in, small_number

_AGO = re.compile(r"\b(\w+(?:-\w+)?) (day|week|fortnight)s? (?:ago|back|earlier)\b")
_DAYS = {"day": 1, "week": 7, "fortnight": 14}
_TODAY = re.compile(r"\b(?:today|tonight|this (?:very )?(?:morning|afternoon|evening|noon)|earlier on|just now)\b")
_YESTERDAY = re.compile(r"\b(?:yesterday|last night)\b")
_BEFORE_YESTERDAY = re.compile(r"\bthe day before yesterday\b")
_WEEKDAY = re.compile("|".join(WEEKDAYS))
_NUMBERED = re.compile(r"\bthe (\d{1,2})(?:st|nd|rd|th)\b")
"""``the 14th``: the latest day of that number."""


def past_day(sentence: str, said_on: date) -> date | None:
    """Return the day that a sentence means; None if it names none. A bare weekday is the last before ``said_on``."""
    explicit = sorted(explicit_dates_in(sentence, said_on))
    if explicit:
        return explicit[0]
    back = _days_back(sentence.lower(), said_on)
    return None if back is None else said_on - timedelta(days=back)


def _days_back(lowered: str, said_on: date) -> int | None:
    """Return how many days before ``said_on`` a sentence means; None if it names no day."""
    ago = _AGO.search(lowered)
    count = (1 if ago.group(1) in ("a", "an") else small_number(ago.group(1))) if ago else None
    days_back: int | None = None
    # The order matters: "the day before yesterday" holds "yesterday", and a sentence may name two days.
    if _BEFORE_YESTERDAY.search(lowered):
        days_back = 2
    elif ago and count is not None:
        days_back = count * _DAYS[ago.group(2)]
    elif _YESTERDAY.search(lowered):
        days_back = 1
    elif weekday := _WEEKDAY.search(lowered):
        days_back = (said_on.weekday() - WEEKDAYS.index(weekday.group())) % 7 or 7
    elif _TODAY.search(lowered):
        days_back = 0
    elif numbered := _NUMBERED.search(lowered):
        # not every month has a 31st, but any 62 days have
        day_of_month = int(numbered.group(1))
        days_back = next((back for back in range(62) if (said_on - timedelta(days=back)).day == day_of_month), None)
    return days_back
