"""Typed values, and the one reader of them in text: dates, times, durations, amounts, numbers, names and terms.

``types`` has the forms that a data set's gold carries. The other modules find values in running English: ``reading``
reads a text once and keeps what was found, ``match`` says where a text states a given value.
"""

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
    ValueRecord,
    WeekdayValue,
)

__all__ = [
    "AmountValue",
    "DateValue",
    "DurationValue",
    "NameValue",
    "OrderValue",
    "PlaceValue",
    "SetValue",
    "TermValue",
    "TimeValue",
    "Value",
    "ValueRecord",
    "WeekdayValue",
]
