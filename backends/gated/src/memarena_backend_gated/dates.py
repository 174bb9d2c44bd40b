"""Reads the day that a wish names: a weekday, a date in words, a span from now, relative to the day of its turn.

Wishes hold until a day or from a day on ("keep it quiet until Friday").
"""

from __future__ import annotations

from datetime import date, timedelta

from memarena_backend_gated.english import patterns

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}

_PATTERNS = patterns("days")


def day_named(text: str, today: date) -> date | None:
    """Return the first day that a phrase names; None if it names none, or one that does not exist (February 30)."""
    earliest = None
    for pattern in _PATTERNS:
        match = pattern.search(text)
        if match is not None and (earliest is None or match.start() < earliest.start()):
            earliest = match
    if earliest is None:
        return None
    try:
        return _read({key: value.lower() for key, value in earliest.groupdict().items() if value}, today)
    except ValueError:
        return None


def _read(parts: dict[str, str], today: date) -> date:
    """Return the day of a match. ``parts`` are its named groups in lower case. Raises ValueError for no such day."""
    if "iso" in parts:
        return date.fromisoformat(parts["iso"])
    if "month" in parts or "only_day" in parts:
        return _in_month(parts, today)
    if "weekday" in parts:
        ahead = (_WEEKDAYS.index(parts["weekday"]) - today.weekday()) % 7 or 7
        return today + timedelta(days=ahead)
    if "word" in parts:
        return today + timedelta(days={"today": 0, "tonight": 0, "the day after tomorrow": 2}.get(parts["word"], 1))
    if "period" in parts:
        return _period(parts["period"], today)
    count = _NUMBERS.get(parts["count"]) or int(parts["count"])
    return today + timedelta(days=count * {"day": 1, "week": 7, "month": 30}[parts["unit"]])


def _in_month(parts: dict[str, str], today: date) -> date:
    if "only_day" in parts:
        candidate = today.replace(day=int(parts["only_day"]))
        if candidate >= today:
            return candidate
        # 32 days after the first of a month are in the next month.
        return (candidate.replace(day=1) + timedelta(days=32)).replace(day=candidate.day)
    month, day = _MONTHS.index(parts["month"][:3]) + 1, int(parts["day"])
    if "year" in parts:
        return date(int(parts["year"]), month, day)
    # Without a year: this year's date, or next year's if that is more than half a year ago.
    candidate = date(today.year, month, day)
    return candidate if candidate >= today - timedelta(days=180) else date(today.year + 1, month, day)


def _period(period: str, today: date) -> date:
    monday = today + timedelta(days=7 - today.weekday())
    first = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    return {
        "next week": monday,
        "the end of the week": monday,
        "the weekend": monday - timedelta(days=2),
        "this weekend": monday - timedelta(days=2),
        "next year": date(today.year + 1, 1, 1),
    }.get(period, first)
