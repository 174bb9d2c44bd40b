"""Types the answers of published data sets that are plainly a date or a number, for exact scoring.

All other answers stay text: a wrong type would make right answers wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue, DateValue, Value
from memarena_dataset.values.calendar import MONTHS
from memarena_dataset.values.generous import small_number

_MONTH = "(" + "|".join(MONTHS) + ")"
_DATE_FORMS = (
    (re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)? ?{_MONTH},? ?(\d{{4}})"), ("day", "month", "year")),
    (re.compile(rf"{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? ?(\d{{4}})"), ("month", "day", "year")),
    (re.compile(rf"{_MONTH}[,.]? ?(\d{{4}})"), ("month", "year")),
    (re.compile(r"(?:in )?(\d{4})"), ("year",)),
)


def plain_date(text: str) -> DateValue | None:
    """Return the value of a text that is only a date, a month or a year; None for any other."""
    lowered = text.strip().strip(".").lower()
    for pattern, names in _DATE_FORMS:
        match = pattern.fullmatch(lowered)
        if match is None:
            continue
        parts = dict(zip(names, match.groups(), strict=True))
        iso = parts["year"]
        if "month" in parts:
            iso += f"-{MONTHS.index(parts['month']) + 1:02d}"
        if "day" in parts:
            iso += f"-{int(parts['day']):02d}"
        try:
            return DateValue(date=iso)
        except ValueError:  # 30 February
            return None
    return None


def plain_number(text: str) -> AmountValue | None:
    """Return the value of a text that is only a number, in digits or as one word; None for any other."""
    stripped = text.strip().strip(".").lower()
    if re.fullmatch(r"\d{1,6}", stripped):
        return AmountValue(amount=float(stripped))
    if re.fullmatch(r"[a-z]+", stripped):
        number = small_number(stripped)
        return None if number is None else AmountValue(amount=float(number))
    return None


def safe_values(family: Family, answers: Sequence[str]) -> tuple[Value, ...]:
    """Return the value of a single answer that is plainly a date (temporal) or a number (other families), else ()."""
    if len(answers) != 1:
        return ()
    value: Value | None = plain_date(answers[0]) if family is Family.TEMPORAL else plain_number(answers[0])
    return () if value is None else (value,)
