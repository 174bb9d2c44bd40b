"""Words typed values in many ways, and draws near values: the material of synthetic answers.

A *near* value differs a little (another day, a few euros more): an answer with it is wrong, and easily called right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from memarena_dataset.values import (
    AmountValue,
    DateValue,
    DurationValue,
    NameValue,
    OrderValue,
    PlaceValue,
    SetValue,
    TermValue,
    TimeValue,
    Value,
    WeekdayValue,
)
from memarena_dataset.values.calendar import WEEKDAYS
from memarena_dataset.values.reading import read_text

_ONES_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_ONES = tuple(_ONES_WORDS.split())
_TENS_WORDS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = tuple(_TENS_WORDS.split())
_SIGNS = {"euros": "€", "dollars": "$", "pounds": "£"}
_ARTICLES = ("a ", "an ", "the ")
_PREPOSITION_WORDS = "in on at under behind above below beside inside next with by"
_PREPOSITIONS = tuple(f"{word} " for word in _PREPOSITION_WORDS.split())
_STEPS_MINUTES = (5, 10, 15, 25, 45, 60, 90)
"""Minutes by which a near time of day differs."""
_LONG = 100
"""Least number that is worded with hundreds."""


def kind_of(value: Value) -> str:
    """Return the heading under which ways to say a value are listed: its type, or ``month`` or ``year`` of a date."""
    if isinstance(value, DateValue):
        return {10: "date", 7: "month", 4: "year"}[len(value.date)]
    return value.type


def say(value: Value, form: str, today: date | None) -> str:
    """Return a value in a form such as ``{day} {month} {year}``. Raises KeyError if its type lacks a form's field."""
    return fill(form, _fields(value, today)).strip()


def fill(template: str, fields: Mapping[str, str]) -> str:
    """Return a template with its fields replaced by name; unknown fields stay.

    A value that ends with a full stop does not get a second one.
    """
    for name, text in fields.items():
        plain, sign = text.strip(), "{" + name + "}"
        if plain.endswith("."):
            template = re.sub(re.escape(sign) + r"\.(?!\.)", sign, template)
        template = template.replace(sign, plain)
    return template


def in_words(number: int) -> str:
    """Return a number below one million in English words."""
    if number >= 1000:
        remainder = f" {in_words(number % 1000)}" if number % 1000 else ""
        return f"{in_words(number // 1000)} thousand{remainder}"
    if number >= _LONG:
        remainder = f" and {in_words(number % _LONG)}" if number % _LONG else ""
        return f"{_ONES[number // _LONG]} hundred{remainder}"
    if number >= len(_ONES):
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    return _ONES[number]


def near(value: Value, pool: Sequence[Value], rng: random.Random) -> Value | None:  # noqa: PLR0911 (one per type)
    """Return a value of the same type that differs little; None if there is none."""
    if isinstance(value, DateValue):
        return _near_date(value, rng)
    if isinstance(value, TimeValue):
        minutes = int(value.time[:2]) * 60 + int(value.time[3:]) + rng.choice((-1, 1)) * rng.choice(_STEPS_MINUTES)
        return TimeValue(time=f"{minutes // 60 % 24:02d}:{minutes % 60:02d}")
    if isinstance(value, WeekdayValue):
        # One or two days away, in either direction.
        step = rng.choice((1, 2, 5, 6))
        return WeekdayValue.model_validate({"weekday": WEEKDAYS[(WEEKDAYS.index(value.weekday) + step) % 7]})
    if isinstance(value, DurationValue):
        days = value.days + rng.choice((-1, 1, 2))
        return DurationValue(days=days if days > 0 else value.days + 1)
    if isinstance(value, AmountValue):
        step = max(1, round(value.amount * rng.choice((0.02, 0.05, 0.1, 0.3))))
        return AmountValue(amount=value.amount + step, unit=value.unit)
    if isinstance(value, OrderValue):
        items = list(value.items)
        index = rng.randrange(len(items) - 1)
        items[index], items[index + 1] = items[index + 1], items[index]
        return OrderValue(items=tuple(items))
    if isinstance(value, SetValue):
        return SetValue(members=value.members[:-1]) if len(value.members) > 1 else None
    return another(value, pool, rng)


def another(value: Value, pool: Sequence[Value], rng: random.Random) -> Value | None:
    """Return a value of the same type from the pool that shares no word with this value; None if there is none."""
    own_words = set(_plain(value).lower().split()) - {"a", "an", "the", "of", "in"}
    others = [
        v
        for v in pool
        if kind_of(v) == kind_of(value) and not own_words & set(_plain(v).lower().replace("-", " ").split())
    ]
    # A month that is a gold of type "term" does not compete with a thing.
    dated = bool(read_text(_plain(value)).of_kind("date", "weekday"))
    others = [v for v in others if bool(read_text(_plain(v)).of_kind("date", "weekday")) == dated]
    if isinstance(value, AmountValue):
        others = [v for v in others if isinstance(v, AmountValue) and v.unit == value.unit]
    return rng.choice(others) if others else None


def _near_date(value: DateValue, rng: random.Random) -> DateValue:
    """Return a date that is a few days, months or years away, in the unit in which the date is stated."""
    step = rng.choice((-5, -3, -2, -1, 1, 2, 3, 5))
    parts = [int(p) for p in value.date.split("-")]
    if len(parts) == 3:
        return DateValue(date=(date(parts[0], parts[1], parts[2]) + timedelta(days=step)).isoformat())
    if len(parts) == 2:
        months = parts[0] * 12 + parts[1] - 1 + step
        return DateValue(date=f"{months // 12:04d}-{months % 12 + 1:02d}")
    return DateValue(date=f"{parts[0] + step:04d}")


# ------------------------------------------------------------------ fields of forms


def _fields(value: Value, today: date | None) -> dict[str, str]:  # noqa: PLR0911 (one per type)
    """Return the text of each field that a form for a value of this type may have."""
    if isinstance(value, NameValue):
        return {"full": value.aliases[0] if value.aliases else value.name, "alias": _short_name(value)}
    if isinstance(value, PlaceValue):
        return {"name": value.name, "bare": _without_article(value.name), "lower": value.name.lower()}
    if isinstance(value, TermValue):
        # A way or a spot ("under the tile") has no article that could be exchanged.
        spot = value.text.lower().startswith(_PREPOSITIONS)
        bare = value.text if spot else _without_article(value.text)
        return {
            "text": value.text,
            "bare": bare,
            "the bare": bare,
            "upper": value.text.upper(),
            "quoted": f'"{value.text}"',
        }
    if isinstance(value, DateValue):
        return _date_fields(value, today)
    if isinstance(value, WeekdayValue):
        return {"weekday": value.weekday.capitalize(), "short": value.weekday.capitalize()[:3]}
    if isinstance(value, TimeValue):
        return _time_fields(value)
    if isinstance(value, DurationValue):
        return _duration_fields(value)
    if isinstance(value, AmountValue):
        return _amount_fields(value)
    return _list_fields([_plain(i) for i in (value.items if isinstance(value, OrderValue) else value.members)])


def _list_fields(items: Sequence[str]) -> dict[str, str]:
    """Return the fields of a set or an order: ways to list its items."""
    middle = "".join(f" After that, {i}." for i in items[1:-1])
    return {
        "chain; then ": "; then ".join(items),
        "list": ", ".join(items),
        "numbered": " ".join(f"{n}. {i}" for n, i in enumerate(items, 1)),
        "first-then": f"First {items[0]}.{middle} Finally, {items[-1]}.",
        "and": f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0],
        "with": f"{items[0]} together with {' and '.join(items[1:])}" if len(items) > 1 else items[0],
    }


def _plain(value: Value) -> str:
    if isinstance(value, NameValue | PlaceValue):
        return value.name
    if isinstance(value, TermValue):
        return value.text
    return " ".join(str(v) for v in value.model_dump(exclude={"type"}).values())


def _short_name(value: NameValue) -> str:
    """Return the last alias, or the first name if there is no alias."""
    if value.aliases:
        return value.aliases[-1]
    return value.name.split()[0]


def _without_article(text: str) -> str:
    return next((text[len(a) :] for a in _ARTICLES if text.lower().startswith(a)), text)


def _date_fields(value: DateValue, today: date | None) -> dict[str, str]:
    """Return the fields of a date; a month or a year has only some of them."""
    parts = value.date.split("-")
    fields = {"year": parts[0]}
    if len(parts) == 1:
        return fields
    first = date(int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) > 2 else 1)
    fields |= {"month": f"{first:%B}", "mon": f"{first:%b}", "m": str(first.month)}
    if len(parts) == 2:
        return fields
    day = first.day
    ending = "th" if 10 < day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return fields | {
        "day": str(day),
        "dd": parts[2],
        "mm": parts[1],
        "ordinal": f"{day}{ending}",
        "weekday": f"{first:%A}",
        "ago": _ago(first, today),
    }


def _ago(day: date, today: date | None) -> str:
    days = (today - day).days if today else -1
    if days < 1:
        return f"{day:%B} {day.day}"
    if days == 1:
        return "yesterday"
    return f"{days // 7} weeks ago" if days % 7 == 0 and days > 7 else f"{in_words(days)} days ago"


def _time_fields(value: TimeValue) -> dict[str, str]:
    """Return the fields of a time of day: digital, on a clock of 12 hours, part of the day."""
    hours, minutes = int(value.time[:2]), value.time[3:]
    half = "am" if hours < 12 else "pm"
    part = "morning" if hours < 12 else "afternoon" if hours < 18 else "evening"
    return {
        "h": str(hours % 12 or 12),
        "hh": value.time[:2],
        "mm": minutes,
        "half": half,
        "dotted": f"{half[0]}.m.",
        "part": part,
    }


def _duration_fields(value: DurationValue) -> dict[str, str]:
    """Return the fields of a duration; one that is not whole days is stated in minutes."""
    days = round(value.days)
    in_full = in_words(days)
    if abs(value.days - days) > 1e-6:
        minutes = round(value.days * 1440)
        return dict.fromkeys(("n", "words", "weeks"), f"{minutes} minutes, in")
    plural = f"{days} days" if days != 1 else "1 day"
    weeks = f"{days // 7} weeks" if days % 7 == 0 and days > 7 else plural
    return {"n": str(days), "words": in_full, "weeks": weeks}


def _amount_fields(value: AmountValue) -> dict[str, str]:
    """Return the fields of an amount: in digits, in words, with its unit or currency sign."""
    number = f"{value.amount:g}" if value.amount < 1e6 else f"{value.amount:.0f}"
    unit = value.unit or ""
    integer = int(value.amount)
    sign = f"{_SIGNS[unit]}{number}" if unit in _SIGNS else f"{number} {unit}".strip()
    in_full = in_words(integer) if integer == value.amount and integer < 1e6 else number
    comma = f"{integer:,}" if integer == value.amount else number
    return {"n": number, "unit": unit, "words": in_full, "sign": sign, "comma": comma}
