"""Defines typed values and reads them from text: dates, times, durations, amounts, numbers, names and terms.

``types`` has the types of a data set's gold. The other modules recognize values in English text: ``reading`` reads a
text once and stores its values, ``match`` returns the positions at which a text states a value.
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
