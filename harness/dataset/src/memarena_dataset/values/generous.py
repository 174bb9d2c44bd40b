"""Returns every number, length, clock time and date that a text could mean.

:mod:`memarena_dataset.values.reading` is strict; these readings decide only whether a text *could* state a value
(``possible``), never whether an answer is right. An hour without morning or evening counts as both, "Thursday" as the
last or the next one, "the twentieth" as the last or the next day with that number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache
from itertools import islice

from memarena_dataset.values.calendar import MONTHS, UNIT_DAYS, WEEKDAYS
from memarena_dataset.values.dates import dates, dotted_times, durations, times
from memarena_dataset.values.mentions import DurationMention
from memarena_dataset.values.numbers import ORDINAL_PATTERN, digits_for_words, numbers_of_words, ordinal_of
from memarena_dataset.values.words import tidy

_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_BEFORE_HOUR = "at|by|until|till|from|around|about|before|after"
# "at 7", and "7 30" or "7-30": times that the strict reading leaves open.
_BARE_TIME = re.compile(
    rf"\b(?:{_BEFORE_HOUR}) (?P<at>\d{{1,2}})\b(?![:.h]\d|[ -](?:15|30|45)\b|\s*[ap]\.?\s?m\b)|"
    r"(?<![\d-])\b(?P<h>\d{1,2})[ -](?P<m>15|30|45)\b",
    re.IGNORECASE,
)
_NAMED_MONTH = "|".join(MONTHS)
# "the 20th", "the twentieth": a day without its month.
_DAY_OF_A_MONTH = re.compile(rf"\bthe (\d{{1,2}}(?:st|nd|rd|th)?|{ORDINAL_PATTERN})\b(?! (?:of )?(?:{_NAMED_MONTH})\b)")
_NAMED_DAY = re.compile(rf"\b(next |last )?({'|'.join(WEEKDAYS)})\b")
_SOME_DAYS = re.compile(r"\b(\d+|an?) (day|week|fortnight)s?( ago)?")
_NEAR_DAYS = {"tomorrow": {1, 2}, "yesterday": {-1, -2}, "last night": {-1}, "overnight": {-1, 1},
              "next week": set(range(1, 15)), "last week": set(range(-14, 0))}  # fmt: skip


def numbers_in(text: str) -> frozenset[float]:
    """Return every number in a text: "six hundred and forty", "1,250", "24", "a dozen".

    Digits before a size count too: "2.5 million" is both 2.5 and 2,500,000.
    """
    return frozenset(_numbers(text))


def small_number(word: str) -> int | None:
    """Return a number below 100 from digits or words ("7", "seven", "twenty-five"); None for any other word."""
    values = list(_numbers(word))
    return int(values[0]) if len(values) == 1 and values[0] < 100 else None


def lengths_in(text: str) -> list[DurationMention]:
    """Return every length of time in a text: "three weeks", "one week plus four days", "half an hour", "a year"."""
    return durations(_digital(text), any_article=True)


def times_in(text: str) -> frozenset[int]:
    """Return every clock time in a text, in minutes after midnight."""
    digital = _digital(text)
    strict = times(digital)
    all_minutes = {minutes for time in (*strict, *dotted_times(digital, strict)) for minutes in time.minutes}
    for match in _BARE_TIME.finditer(digital):
        if any(time.start < match.end() and match.start() < time.end for time in strict):
            continue
        hour, minute = int(match.group("at") or match.group("h")), int(match.group("m") or 0)
        if hour <= 24:
            all_minutes.add(hour % 24 * 60 + minute)
        if hour <= 12:
            all_minutes.add((hour + 12) % 24 * 60 + minute)
    return frozenset(all_minutes)


def explicit_dates_in(text: str, said_on: date) -> frozenset[date]:
    """Return the dates written with day and month; a missing year is the one nearest to ``said_on``."""
    days: set[date] = set()
    for mention in dates(_digital(text), None):
        for reading in mention.readings:
            if reading.month is None or reading.day is None or reading.around:
                continue
            years = (said_on.year - 1, said_on.year, said_on.year + 1) if reading.year is None else (reading.year,)
            candidates = [day for year in years if (day := _day(year, reading.month, reading.day))]
            days |= {min(candidates, key=lambda day: abs((day - said_on).days))} if candidates else set()
    return frozenset(days)


def dates_in(text: str, said_on: date) -> frozenset[date]:
    """Return every date that a text could mean, including ``said_on``, the day on which it was spoken."""
    lowered, days = text.lower(), {said_on} | explicit_dates_in(text, said_on)
    for match in _DAY_OF_A_MONTH.finditer(lowered):
        digits = re.match(r"\d+", match.group(1))
        days |= _day_numbers_near(int(digits.group()) if digits else ordinal_of(match.group(1)) or 0, said_on)
    for match in _NAMED_DAY.finditer(lowered):
        ahead = (WEEKDAYS.index(match.group(2)) - said_on.weekday()) % 7
        shifts = {"next ": (ahead, ahead + 7), "last ": (ahead - 7, ahead - 14)}.get(match.group(1), (ahead, ahead - 7))
        days |= {_shift(said_on, days) for days in shifts}
    return frozenset(days | {_shift(said_on, days) for days in _relative_days(lowered)})


def _relative_days(lowered: str) -> set[int]:
    shifts = {shift for words, near in _NEAR_DAYS.items() if words in lowered for shift in near}
    for match in _SOME_DAYS.finditer(_digital(lowered)):
        count = 1 if match.group(1) in ("a", "an") else int(match.group(1))
        days = count * int(UNIT_DAYS[match.group(2)])
        shifts |= {-days} if match.group(3) else {days, -days}
    return shifts


@lru_cache(maxsize=4096)
def _digital(text: str) -> str:
    return digits_for_words(tidy(text), every_digit=True)


def _numbers(text: str) -> Iterator[float]:
    text = tidy(text)
    yield from numbers_of_words(text)
    yield from (_value(match.group()) for match in _DIGITS.finditer(text))


def _value(digits: str) -> float:
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", digits):
        return float(digits.replace(",", ""))
    if re.fullmatch(r"\d+[.,]\d+", digits):
        return float(digits.replace(",", "."))
    return float(re.sub(r"[.,]", "", digits))


def _day_numbers_near(number: int, said_on: date) -> set[date]:
    """Return the last and the next day with this number in its month."""
    days: set[date] = set()
    for shifts in (range(0, -62, -1), range(62)):
        days |= set(islice((day for shift in shifts if (day := _shift(said_on, shift)).day == number), 1))
    return days


def _shift(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return day


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None  # "the thirty-first of February" is not a date, so the words mean something else
