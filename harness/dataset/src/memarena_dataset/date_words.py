"""Calendar dates in running English, seen from the day on which the words were said.

Generous on purpose, as number_words.py is: "Thursday" may be the last one or the next, "the twentieth" of this month or
the one before.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import islice

from memarena_dataset.number_words import ORDINAL_PATTERN, ordinal_of, small_number

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_MONTH = "(" + "|".join(f"{name}|{name[:3]}" for name in MONTHS) + ")"
_DAY = rf"(\d{{1,2}}(?:st|nd|rd|th)?|{ORDINAL_PATTERN})"
_YEAR = r"(?:,? (\d{4}))?"
_COUNT = r"(\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fourteen)"


def explicit_dates_in(text: str, said_on: date) -> frozenset[date]:
    """Dates written with day and month; a missing year is the one that brings them nearest to ``said_on``."""
    lowered = text.lower()
    found: set[date] = set()
    for match in re.finditer(r"\b(\d{4})-(\d{2})-(\d{2})\b", lowered):
        _add(found, int(match.group(1)), int(match.group(2)), int(match.group(3)))
    for match in re.finditer(rf"\b{_DAY}(?: of)? {_MONTH}\b{_YEAR}", lowered):
        found |= _dated(match.group(1), match.group(2), match.group(3), said_on)
    for match in re.finditer(rf"\b{_MONTH}\.? (?:the )?{_DAY}\b{_YEAR}", lowered):
        found |= _dated(match.group(2), match.group(1), match.group(3), said_on)
    return frozenset(found)


def dates_in(text: str, said_on: date) -> frozenset[date]:
    """Every date that a text could mean, the day on which it was said included."""
    lowered = text.lower()
    found = {said_on} | explicit_dates_in(text, said_on)
    for match in re.finditer(rf"\bthe {_DAY}\b(?! (?:of )?{_MONTH}\b)", lowered):
        found |= _day_numbers_near(_day_number(match.group(1)), said_on)
    for position, name in enumerate(WEEKDAYS):
        for match in re.finditer(rf"\b(next |last )?{name}\b", lowered):
            ahead = (position - said_on.weekday()) % 7
            meant = {"next ": (ahead, ahead + 7), "last ": (ahead - 7, ahead - 14)}.get(
                match.group(1), (ahead, ahead - 7)
            )
            found |= {_shift(said_on, days) for days in meant}
    found |= {_shift(said_on, days) for days in _relative_days(lowered)}
    return frozenset(found)


def _relative_days(lowered: str) -> set[int]:
    shifts: set[int] = set()
    for word, meant in (("tomorrow", {1, 2}), ("yesterday", {-1, -2}), ("last night", {-1}), ("overnight", {-1, 1})):
        if word in lowered:
            shifts |= meant
    for match in re.finditer(rf"\b{_COUNT} (day|week|fortnight)s?( ago)?", lowered):
        count = 1 if match.group(1) in ("a", "an") else small_number(match.group(1)) or 0
        days = count * {"day": 1, "week": 7, "fortnight": 14}[match.group(2)]
        shifts |= {-days} if match.group(3) else {days, -days}
    for phrase, sign in (("next week", 1), ("last week", -1)):
        if phrase in lowered:
            shifts |= {sign * days for days in range(1, 15)}
    return shifts


def _dated(day: str, month: str, year: str | None, said_on: date) -> set[date]:
    found: set[date] = set()
    number = _day_number(day)
    month_number = next(place for place, name in enumerate(MONTHS, start=1) if name.startswith(month))
    if year is not None:
        _add(found, int(year), month_number, number)
        return found
    for candidate in (said_on.year - 1, said_on.year, said_on.year + 1):
        _add(found, candidate, month_number, number)
    return {min(found, key=lambda moment: abs((moment - said_on).days))} if found else found


def _day_number(word: str) -> int:
    digits = re.match(r"\d+", word)
    return int(digits.group()) if digits else ordinal_of(word) or 0


def _day_numbers_near(number: int, said_on: date) -> set[date]:
    """The last and the next day with that number in its month."""
    found: set[date] = set()
    for shifts in (range(0, -62, -1), range(62)):
        found |= set(islice((day for shift in shifts if (day := _shift(said_on, shift)).day == number), 1))
    return found


def _shift(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return day


def _add(found: set[date], year: int, month: int, day: int) -> None:
    try:
        found.add(date(year, month, day))
    except ValueError:
        return  # "the thirty-first of February" is no date, so the words mean something else
