"""Finds dates, weekdays, times of day and durations in a text whose numbers are digits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

from memarena_dataset.values.calendar import UNIT_DAYS, UNIT_SLACK, month_number, unit_name, weekday_number
from memarena_dataset.values.date_patterns import (
    BARE_WEEKDAY,
    DATES,
    DOTTED_TIME,
    DURATION,
    LONE_MONTH,
    LONE_YEAR,
    MONTH_ONLY,
    QUALIFIER,
    RELATIVE,
    TAKES,
    TIMES,
)
from memarena_dataset.values.mentions import (
    DateMention,
    DurationMention,
    PartialDate,
    TimeMention,
    WeekdayMention,
)


def dates(text: str, today: date | None) -> list[DateMention]:
    """Return the dates in the text, without relative ones (``yesterday``, ``two weeks ago``) if ``today`` is None."""
    spans: list[tuple[int, int]] = []
    dates: list[DateMention] = []
    for pattern in DATES:
        for match in pattern.finditer(text):
            readings = _absolute(match)
            if readings and not _overlaps(spans, match.span()):
                dates.append(_qualified(text, match, readings))
                spans.append(match.span())
    for match in [*LONE_MONTH.finditer(text), *MONTH_ONLY.finditer(text), *LONE_YEAR.finditer(text)]:
        groups = match.groupdict()
        key = "month" if groups.get("month") else "year"
        month = month_number(groups["month"]) if key == "month" else None
        if (
            key == "month"
            and match.group("month").lower() in ("may", "march", "mar")
            and not match.group("month")[0].isupper()
        ):
            continue
        if not _overlaps(spans, match.span(key)):
            year = None if key == "month" else int(match.group("year"))
            dates.append(DateMention(*match.span(key), frozenset({PartialDate(year, month)})))
            spans.append(match.span(key))
    if today is not None:
        for match in RELATIVE.finditer(text):
            readings = frozenset(_relative(match, today))
            if readings and not _overlaps(spans, match.span()):
                dates.append(DateMention(*match.span(), readings))
    return sorted(dates, key=lambda m: m.start)


def weekdays(text: str, apart_from: list[DateMention]) -> list[WeekdayMention]:
    """Return the days of the week that are neither part of a date nor right next to one (``apart_from``)."""
    weekdays = []
    for match in BARE_WEEKDAY.finditer(text):
        word = match.group("weekday")
        short = len(word) < 5
        if (short and not word[0].isupper()) or any(_touches(text, match.span(), (d.start, d.end)) for d in apart_from):
            continue
        weekdays.append(WeekdayMention(*match.span(), weekday_number(word)))
    return weekdays


def times(text: str) -> list[TimeMention]:
    """Return the times of day in the text, by position."""
    spans: list[tuple[int, int]] = []
    times = []
    for pattern in TIMES:
        for match in pattern.finditer(text):
            minutes = _minutes(match)
            if minutes and not _overlaps(spans, match.span()):
                times.append(TimeMention(*match.span(), minutes))
                spans.append(match.span())
    return sorted(times, key=lambda m: m.start)


def dotted_times(text: str, apart_from: list[TimeMention]) -> list[TimeMention]:
    """Return numbers such as ``16.10`` that may be times or amounts, outside of known times (``apart_from``)."""
    spans = [(m.start, m.end) for m in apart_from]
    matches = [(match, _minutes(match)) for match in DOTTED_TIME.finditer(text)]
    return [TimeMention(*m.span(), minutes) for m, minutes in matches if minutes and not _overlaps(spans, m.span())]


AHEAD = 200
"""Number of characters before a length that are checked for its context, limited so that long answers are read fast."""


_TAKEN_OFF = re.compile(r"\s(?:minus|less)\s", re.IGNORECASE)


def durations(text: str, *, any_article: bool = False) -> list[DurationMention]:
    """Return the lengths of time in the text; ``a week`` if it is a length (not ``twice a week``), or any_article."""
    durations = []
    for match in DURATION.finditer(text):
        article = not any_article and match.group(1).lower() in ("a", "an")
        if article and not TAKES.search(text[max(0, match.start() - AHEAD) : match.start()]):
            continue
        groups = match.groups()
        parts = [groups[i : i + 4] for i in (0, 4) if groups[i]]
        if len(parts) > 1 and UNIT_DAYS[unit_name(parts[1][2])] >= UNIT_DAYS[unit_name(parts[0][2])]:
            # "44 minutes and 21 minutes" are two lengths, "an hour and 21 minutes" is one.
            durations.append(_duration(match.start(1), match.end(3), parts[:1]))
            durations.append(_duration(match.start(5), match.end(), parts[1:]))
            continue
        duration = _duration(*match.span(), parts)
        if len(parts) > 1 and _TAKEN_OFF.search(match.group()):
            # "two weeks minus a day": the sum holds the day once, so it is subtracted twice.
            duration = replace(duration, days=duration.days - 2 * _duration(*match.span(), parts[1:]).days)
        durations.append(duration)
    return durations


def _duration(start: int, end: int, parts: Sequence[Sequence[str | None]]) -> DurationMention:
    """Return a length from its parts: number, "and a half" before the unit, unit, "and a half" after it."""
    lengths = [(_length(n or "", half, unit or "", behind), unit_name(unit or "")) for n, half, unit, behind in parts]
    slack = sum(UNIT_SLACK.get(unit, 0.0) * max(1.0, days / UNIT_DAYS[unit]) for days, unit in lengths)
    return DurationMention(start, end, sum(days for days, _ in lengths), slack)


# ------------------------------------------------------------------ readings


def _absolute(match: re.Match[str]) -> frozenset[PartialDate]:
    groups = match.groupdict()
    year = int(groups["year"]) if groups.get("year") else None
    if groups.get("sep"):
        year = year + 2000 if year is not None and year < 100 else year
        pairs = {(int(groups["a"]), int(groups["b"])), (int(groups["b"]), int(groups["a"]))}
        return frozenset(PartialDate(year, m, d) for m, d in pairs if 1 <= m <= 12 and 1 <= d <= 31)
    month = int(groups["m"]) if groups.get("m") else month_number(groups["month"])
    day = int(groups["day"]) if groups.get("day") else None
    if not 1 <= month <= 12 or not (day is None or 1 <= day <= 31):
        return frozenset()
    return frozenset({PartialDate(year, month, day)})


def _qualified(text: str, match: re.Match[str], readings: frozenset[PartialDate]) -> DateMention:
    """Apply words before a date: ``the Sunday before 25 May 2023`` is a day, ``the week before …`` a week near it."""
    qualifier = QUALIFIER.search(text[: match.start()])
    if qualifier is None:
        return DateMention(*match.span(), readings)
    side = qualifier.group("side").lower()
    if qualifier.group("weekday") and side != "of":
        back = side in ("before", "prior to")
        moved = {_next_weekday(r.whole, weekday_number(qualifier.group("weekday")), back) for r in readings if r.whole}
        if moved:
            return DateMention(qualifier.start(), match.end(), frozenset(PartialDate.of(d) for d in moved))
    unit = qualifier.group("what").lower()
    if unit in ("day", "night") and side != "of":
        step = timedelta(days=-1 if side in ("before", "prior to") else 1)
        return DateMention(
            qualifier.start(), match.end(), frozenset(PartialDate.of(r.whole + step) for r in readings if r.whole)
        )
    around = f"{unit} {side}"
    return DateMention(
        qualifier.start(), match.end(), frozenset(PartialDate(r.year, r.month, r.day, around) for r in readings)
    )


def _relative(match: re.Match[str], today: date) -> Iterator[PartialDate]:
    groups = match.groupdict()
    if groups["fixed"]:
        steps = {
            "yesterday": -1,
            "last night": -1,
            "tomorrow": 1,
            "the day before yesterday": -2,
            "the day after tomorrow": 2,
        }
        yield PartialDate.of(today + timedelta(days=steps.get(groups["fixed"].lower(), 0)))
    elif groups["period"]:
        step = {"next": 1, "coming": 1, "this coming": 1, "last": -1, "past": -1}.get(groups["which"].lower(), 0)
        yield _shifted(today, step, groups["period"].lower(), whole=False)
    elif groups["weekday"]:
        for day in _named_weekday(groups["which"].lower(), weekday_number(groups["weekday"]), today):
            yield PartialDate.of(day)
    else:
        count = groups["count"] or groups["ahead"]
        number = int(count) if count.isdigit() else 1
        ahead = groups["ahead"] is not None or groups["way"].lower() in ("from now", "later")
        unit = (groups["unit"] or groups["aheadunit"]).lower()
        yield _shifted(today, number if ahead else -number, unit, whole=unit in ("day", "week"))


def _shifted(today: date, count: int, unit: str, whole: bool) -> PartialDate:
    """Shift today by days or weeks to a date, by months or years to a month or year."""
    if unit in ("day", "week"):
        return PartialDate.of(today + timedelta(days=count * (7 if unit == "week" else 1)))
    if unit == "year":
        return PartialDate(today.year + count)
    months = today.year * 12 + today.month - 1 + count
    return PartialDate(months // 12, months % 12 + 1)


def _named_weekday(which: str, weekday: int, today: date) -> list[date]:
    """Return the days that ``last Friday`` or ``next Friday`` can mean, as usage differs by a week."""
    back = _next_weekday(today, weekday, back=True)
    ahead = _next_weekday(today, weekday, back=False)
    if which in ("last", "past", "this past"):
        return [back, back - timedelta(days=7)] if which == "last" else [back]
    if which == "this":
        return [back, today, ahead] if today.weekday() == weekday else [back, ahead]
    return [ahead, ahead + timedelta(days=7)] if which == "next" else [ahead]


def _next_weekday(day: date, weekday: int, back: bool) -> date:
    """Return the nearest day with this weekday strictly before or after ``day``."""
    step = (day.weekday() - weekday) % 7 or 7 if back else -((weekday - day.weekday()) % 7 or 7)
    return day - timedelta(days=step)


def _minutes(match: re.Match[str]) -> frozenset[int]:
    groups = match.groupdict()
    if groups.get("word"):
        return frozenset({0} if groups["word"].lower() == "midnight" else {720})
    hour, minute = int(groups["h"]), _past_the_hour(groups)
    if hour > 24 or minute > 59:
        return frozenset()
    morning, later = (hour % 12) * 60 + minute, (hour % 12 + 12) * 60 + minute
    part = {"a": "morning", "p": "evening"}.get((groups.get("half") or "").lower(), (groups.get("part") or "").lower())
    if part == "morning":
        readings = {morning}
    elif part in ("afternoon", "evening"):
        readings = {later}
    elif hour > 12 or groups["h"].startswith("0"):  # 14:30 and 08:30 are written with 24 hours
        readings = {hour * 60 + minute}
    else:
        readings = {morning, later}
    return frozenset(reading % 1440 for reading in readings)


def _past_the_hour(groups: dict[str, str | None]) -> int:
    """Return the minutes past the hour; negative for ``quarter to``."""
    relation = (groups.get("rel") or "").lower()
    if not relation:
        return int(groups.get("m") or 0)
    offset = 30 if "half" in relation else int(groups.get("mins") or 15)
    return -offset if relation.endswith("to") else offset


def _length(number: str, half: str | None, unit: str, half_behind: str | None) -> float:
    word = number.lower()
    if word.startswith("half"):
        amount = 0.5
    elif word in ("a", "an"):
        amount = 1.0
    else:
        amount = float(word.replace(",", "."))
    return (amount + (0.5 if half or half_behind else 0.0)) * UNIT_DAYS[unit_name(unit)]


def _overlaps(spans: list[tuple[int, int]], span: tuple[int, int]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in spans)


def _touches(text: str, span: tuple[int, int], date_span: tuple[int, int]) -> bool:
    """Whether a weekday is within a date's text or next to it (``Tuesday, 7 May``; ``7 May (Tuesday)``)."""
    if _overlaps([date_span], span):
        return True
    low, high = (span[1], date_span[0]) if span[1] <= date_span[0] else (date_span[1], span[0])
    return re.fullmatch(r"[\s,(]*(?:the\s+)?", text[low:high], re.IGNORECASE) is not None
