"""Locates a typed value in a text, in any wording: ``occurrences(value, text)``.

Dates, times, lengths and amounts are compared as mentions (``14:10`` is ``ten past two in the afternoon``). Names,
things and places are phrases, see :mod:`memarena_dataset.values.terms`. The value judge decides by it whether an
answer states the gold, and by :func:`rivals` whether it also states something else.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from memarena_dataset.values.amounts import canonical_unit, converted, is_known_unit
from memarena_dataset.values.calendar import UNIT_DAYS, WEEKDAYS, unit_name
from memarena_dataset.values.mentions import (
    AmountMention,
    DateMention,
    DurationMention,
    Kind,
    Mention,
    PartialDate,
    ProperMention,
    TimeMention,
    WeekdayMention,
)
from memarena_dataset.values.reading import ReadText
from memarena_dataset.values.terms import Span, merged, name_spans, phrase_spans, term_spans
from memarena_dataset.values.types import (
    AmountValue,
    DateValue,
    DurationValue,
    NameValue,
    PlaceValue,
    TermValue,
    TimeValue,
    WeekdayValue,
)
from memarena_dataset.values.word_lists import word_list

ScalarValue = NameValue | PlaceValue | TermValue | DateValue | WeekdayValue | TimeValue | DurationValue | AmountValue

_KINDS: dict[str, tuple[Kind, ...]] = {
    "name": ("proper",),
    "place": ("proper",),
    "term": (),
    "date": ("date",),
    "weekday": ("weekday",),
    "time": ("time",),
    "duration": ("duration",),
    "amount": ("amount",),
}
"""Kinds of mention that can state a value or compete with it, by the value's type."""
_ROUNDED = 0.01
"""Relative tolerance of an amount in another unit of the same measure: 16.2 miles are 26.1 km."""
# Words that state the amount 1. The module ``numbers`` leaves a lone "one" as it is, since it is mostly a pronoun.
_ONCE = re.compile(r"\b(?:one|once|a single)\b", re.IGNORECASE)


def kinds_of(value: ScalarValue) -> tuple[Kind, ...]:
    """Return the kinds of mention that compete with a value; empty for a term, as any word could be another term."""
    kinds = _KINDS[value.type]
    return (*kinds, "duration") if _length_of(value) is not None else kinds


def occurrences(value: ScalarValue, text: ReadText, unit: str | None = None) -> list[Span]:
    """Return the spans in which the text states the value, by position.

    Args:
        value: the value to look for.
        text: the text to search.
        unit: the unit of time of bare numbers, if the question counts in one ("how many days").
    """
    if isinstance(value, NameValue):
        return name_spans(value, text.text)
    if isinstance(value, TermValue):
        return term_spans((value.text, *value.aliases), text.text)
    if isinstance(value, PlaceValue):
        return term_spans((value.name, *value.aliases), text.text)
    spans = [Span(m.start, m.end) for m in text.mentions if is_value(value, m, text.today, unit)]
    if isinstance(value, WeekdayValue) and not spans and not text.of_kind("weekday"):
        spans = [Span(m.start, m.end) for m in text.of_kind("date") if _wanted_day(value).same(m)]
    if isinstance(value, AmountValue) and value.amount == 1:
        spans += [Span(*m.span()) for m in _ONCE.finditer(text.text)]
    return merged(spans)


def _wanted_day(value: WeekdayValue) -> WeekdayMention:
    return WeekdayMention(0, 0, WEEKDAYS.index(value.weekday))


def rivals(value: ScalarValue, text: ReadText, unit: str | None = None) -> list[Mention]:
    """Return mentions of the value's kind that mean another value: other times for a time, other sums for a sum.

    The arguments are those of :func:`occurrences`. ``3 kg`` is not a rival of ``3 days``.
    """
    kinds = kinds_of(value)
    if unit is not None and isinstance(value, DurationValue):
        kinds = ("duration", "amount")
    mentions = [m for m in text.mentions if m.kind in kinds and not is_value(value, m, text.today, unit)]
    return [m for m in mentions if not isinstance(m, AmountMention) or _competes(value, m)]


def is_value(value: ScalarValue, mention: Mention, today: date | None, unit: str | None = None) -> bool:  # noqa: PLR0911
    """Whether a mention means the value.

    Args:
        value: the value to compare.
        mention: a mention in a text.
        today: the day of the question, near which a bare weekday is a date; None if unknown.
        unit: the unit of time of a bare number, if the question counts in one.
    """
    if isinstance(value, NameValue | PlaceValue | TermValue):
        return isinstance(mention, ProperMention) and bool(phrase_spans(_name(value), " ".join(mention.name)))
    if isinstance(value, DateValue):
        return _is_date(value.date, mention, today)
    if isinstance(value, WeekdayValue):
        return isinstance(mention, WeekdayMention) and WEEKDAYS[mention.weekday] == value.weekday
    if isinstance(value, TimeValue):
        hours, minutes = value.time.split(":")
        return isinstance(mention, TimeMention) and int(hours) * 60 + int(minutes) in mention.minutes
    if isinstance(value, DurationValue):
        if isinstance(mention, AmountMention) and mention.unit is None and unit is not None:
            return abs(mention.amount * UNIT_DAYS[unit] - value.days) < 1e-6
        return isinstance(mention, DurationMention) and mention.is_about(value.days)
    return _is_amount(value, mention)


def _is_amount(value: AmountValue, mention: Mention) -> bool:
    length = _length_of(value)
    if isinstance(mention, DurationMention):
        return length is not None and length.same(mention)
    if isinstance(mention, TimeMention):
        # "At 8" may be an age or a count as well as an hour.
        return value.amount <= 24 and value.amount * 60 in mention.minutes
    if not isinstance(mention, AmountMention):
        return False
    gold_unit = _unit(value)
    same = converted(value.amount, gold_unit, mention.unit)
    if same is not None:
        return abs(mention.amount - same) <= _ROUNDED * same
    if abs(mention.amount - value.amount) > 1e-9:
        return False
    return (
        gold_unit is None or mention.unit is None or _agree(gold_unit, mention.unit) or not is_known_unit(mention.unit)
    )


def _competes(value: ScalarValue, mention: AmountMention) -> bool:
    """Whether another number could be meant as the value: it has the same unit, or none."""
    if isinstance(value, DurationValue):
        return mention.unit is None
    gold_unit = _unit(value) if isinstance(value, AmountValue) else None
    if mention.unit is None or mention.unit in word_list("function_words.v1.txt"):
        return True
    if converted(1.0, gold_unit, mention.unit) is not None:
        return True
    return gold_unit is not None and _agree(gold_unit, mention.unit)


def _unit(value: AmountValue) -> str | None:
    if value.unit is None:
        return None
    return value.unit if is_known_unit(value.unit) else canonical_unit(value.unit)


def _agree(unit: str, other: str) -> bool:
    """Whether two units may be the same: ``pounds`` are money or weight unless a sign shows which."""
    return unit == other or unit.startswith(f"{other}_or_") or other.startswith(f"{unit}_or_")


def _name(value: NameValue | PlaceValue | TermValue) -> str:
    return value.text if isinstance(value, TermValue) else value.name


def _length_of(value: ScalarValue) -> DurationMention | None:
    """Return an amount of a unit of time as a length; None for other values."""
    if not isinstance(value, AmountValue) or value.unit is None:
        return None
    unit = unit_name(value.unit)
    return DurationMention(0, 0, value.amount * UNIT_DAYS[unit], 0.0) if unit in UNIT_DAYS else None


def _is_date(iso: str, mention: Mention, today: date | None) -> bool:
    year, month, day = (*(int(part) for part in iso.split("-")), None, None)[:3]
    gold = PartialDate(year, month, day)
    if isinstance(mention, WeekdayMention):
        return gold.whole is not None and today is not None and _near(gold.whole, mention.weekday, today)
    return isinstance(mention, DateMention) and any(_says(reading, gold) for reading in mention.readings)


def _says(reading: PartialDate, gold: PartialDate) -> bool:
    """Whether a reading states all of the gold; the year may be missing if it has a month."""
    if not reading.agrees(gold):
        return False
    if gold.day is not None:
        return reading.day is not None
    return reading.month is not None if gold.month is not None else reading.year is not None


def _near(day: date, weekday: int, today: date) -> bool:
    """Whether a bare weekday can mean the day: it is at most a week before or after the question."""
    return day.weekday() == weekday and abs(day - today) <= timedelta(days=7)
