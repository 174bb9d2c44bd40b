"""Decides whether an answer states the gold value: a strict match of typed values, used only by these measures.

An answer is right if it states every value and, where values are numbers in digits, clock times, weekdays or dates, no
other of the same type. This is not the value judge of the harness: most answers are written by rules, which neither
hedge nor deny, so neither is looked for. Only ``guessing.guess_with`` reads answers of a language model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from memarena_dataset.gold import ClozeGold, CounterfactualGold, PermissionGold
from memarena_dataset.model import Instance
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
from memarena_dataset.values.generous import explicit_dates_in, lengths_in, numbers_in, times_in
from memarena_dataset.values.phrases import normal, phrase_occurs, spellings

_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_LETTER = re.compile(r"\s*\(?([A-Z])\)?[).:]?(?:\s|$)")


def gold_values(instance: Instance) -> tuple[Value, ...]:
    """Return the values that a right answer states; () if the gold has none (abstention, permission, text only)."""
    gold = instance.gold
    return () if isinstance(gold, PermissionGold) else gold.stated_values


def is_right(instance: Instance, answer: str, today: date) -> bool:
    """Whether ``answer`` states the gold of a value question, dates read from ``today``."""
    gold = instance.gold
    if isinstance(gold, ClozeGold):
        letter = _LETTER.match(answer)
        if letter and answer.strip() not in gold.options:
            return letter.group(1) == gold.answer_letter
    if isinstance(gold, CounterfactualGold) and gold.altered_values and states_all(gold.altered_values, answer, today):
        return False
    return states_all(gold_values(instance), answer, today)


def states_all(values: Sequence[Value], answer: str, today: date) -> bool:
    """Whether an answer states all values and, if that can be read, no other. False without any value."""
    flat = [member for value in values for member in (value.members if isinstance(value, SetValue) else (value,))]
    return bool(flat) and all(_states(value, flat, answer, today) for value in flat)


def _states(value: Value, golds: Sequence[Value], answer: str, today: date) -> bool:
    match value:
        case NameValue() | PlaceValue() | TermValue():
            return any(phrase_occurs(form, normal(answer)) for form in spellings(value))
        case DurationValue():
            lengths = lengths_in(answer)
            return bool(lengths) and all(length.is_about(value.days) for length in lengths)
        case OrderValue():
            return _in_order(value, answer)
        case SetValue():
            return all(_states(member, golds, answer, today) for member in value.members)
        case _:
            return _states_no_other(value, golds, answer, today)


def _states_no_other(
    value: AmountValue | TimeValue | WeekdayValue | DateValue, golds: Sequence[Value], answer: str, today: date
) -> bool:
    """Whether the value is stated and no other value of its type but those of ``golds``."""
    match value:
        case AmountValue():
            amounts = {gold.amount for gold in golds if isinstance(gold, AmountValue)}
            digits = {number for text in _DIGITS.findall(answer) for number in numbers_in(text)}
            return value.amount in numbers_in(answer) and digits <= amounts
        case TimeValue():
            minutes = {_minutes(gold) for gold in golds if isinstance(gold, TimeValue)}
            times = times_in(answer)
            return _minutes(value) in times and all(any((time - gold) % 720 == 0 for gold in minutes) for time in times)
        case WeekdayValue():
            days = {day for day in WEEKDAYS if f" {day} " in normal(answer)}
            return value.weekday in days and days <= {gold.weekday for gold in golds if isinstance(gold, WeekdayValue)}
        case DateValue():
            dates = {moment.isoformat() for moment in explicit_dates_in(answer, today)}
            gold_dates = {gold.date for gold in golds if isinstance(gold, DateValue)}
            right = any(moment.startswith(value.date) for moment in dates)
            return right and all(any(moment.startswith(gold_date) for gold_date in gold_dates) for moment in dates)


def _minutes(value: TimeValue) -> int:
    return int(value.time[:2]) * 60 + int(value.time[3:])


def _in_order(value: OrderValue, answer: str) -> bool:
    text, offset = normal(answer), 0
    for item in value.items:
        positions = [
            position for form in spellings(item) if (position := text.find(normal(form).rstrip(), offset)) >= 0
        ]
        if not positions:
            return False
        offset = min(positions) + 1
    return True
