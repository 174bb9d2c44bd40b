"""Tests whether a text could state a typed value, for the evidence check of ``memarena dataset validate``.

Unlike the value judge, which decides whether an answer is right and must be strict, this test passes if any reading of
the text gives the value: if it fails, the text certainly does not state it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memarena_dataset.values.calendar import MONTHS, WEEKDAYS
from memarena_dataset.values.generous import dates_in, explicit_dates_in, lengths_in, numbers_in, times_in
from memarena_dataset.values.phrases import normal, phrase_occurs, spellings
from memarena_dataset.values.types import (
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


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with the day on which it was spoken, to which "yesterday" refers."""

    text: str
    said_on: date


def states(value: Value, passages: Sequence[Passage]) -> bool:
    """Whether some reading of the passages together gives the value."""
    match value:
        case SetValue():
            entailed = all(states(member, passages) for member in value.members)
        case OrderValue():
            entailed = all(states(item, passages) for item in value.items)
        case AmountValue():
            numbers = {number for passage in passages for number in numbers_in(passage.text)}
            entailed = any(abs(number - value.amount) < 1e-9 for number in numbers)
        case TimeValue():
            hour, minute = value.time.split(":")
            entailed = any(int(hour) * 60 + int(minute) in times_in(passage.text) for passage in passages)
        case DurationValue():
            entailed = _states_duration(value.days, passages)
        case WeekdayValue():
            entailed = _states_weekday(value.weekday, passages)
        case DateValue():
            entailed = _states_date(value.date, passages)
        case NameValue() | PlaceValue() | TermValue():
            texts = [normal(passage.text) for passage in passages]
            entailed = any(phrase_occurs(form, text) for form in spellings(value) for text in texts)
    return entailed


def _states_duration(days: float, passages: Sequence[Passage]) -> bool:
    lengths = (length for passage in passages for length in lengths_in(passage.text))
    # 2% of tolerance, since a length may be rounded; else a length counts as stated by two dates that far apart.
    if any(length.is_about(days, 0.02 * max(days, 1e-3)) for length in lengths):
        return True
    dates = {moment for passage in passages for moment in dates_in(passage.text, passage.said_on)}
    return days == int(days) and any(abs((later - earlier).days) == days for later in dates for earlier in dates)


def _states_weekday(weekday: str, passages: Sequence[Passage]) -> bool:
    return any(
        f" {weekday} " in normal(passage.text)
        or any(WEEKDAYS[moment.weekday()] == weekday for moment in dates_in(passage.text, passage.said_on))
        for passage in passages
    )


def _states_date(iso: str, passages: Sequence[Passage]) -> bool:
    for passage in passages:
        if any(moment.isoformat().startswith(iso) for moment in dates_in(passage.text, passage.said_on)):
            return True
        text = normal(passage.text)
        if f" {iso} " in text:
            return True
        if len(iso) == len("2025-03") and f" {MONTHS[int(iso[5:]) - 1]} " in text:
            return True
    return False


def names_value(value: Value, text: str, said_on: date) -> bool:
    """Whether a text, such as a question, states a value explicitly.

    An order is never stated by naming its items.
    """
    if isinstance(value, OrderValue):
        return False
    if isinstance(value, SetValue):
        return all(names_value(member, text, said_on) for member in value.members)
    if isinstance(value, DateValue):
        dates = explicit_dates_in(text, said_on)
        return any(moment.isoformat().startswith(value.date) for moment in dates) or f" {value.date} " in normal(text)
    if isinstance(value, WeekdayValue):
        return f" {value.weekday} " in normal(text)
    if isinstance(value, DurationValue):
        return any(length.is_about(value.days) for length in lengths_in(text))
    return states(value, [Passage(text, said_on)])
