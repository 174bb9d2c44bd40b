"""Defines the typed values of gold answers, discriminated by ``type``.

A gold with typed values can be scored without a model: the value judge compares an answer's words with them
(:mod:`memarena_dataset.values.match`). This module has only the records.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class ValueRecord(BaseModel):
    """Base of all values: frozen, unknown fields forbidden."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NameValue(ValueRecord):
    """A person. ``aliases`` are other forms that count as the same person."""

    type: Literal["name"] = "name"
    name: str
    aliases: tuple[str, ...] = ()


class PlaceValue(ValueRecord):
    """A place."""

    type: Literal["place"] = "place"
    name: str
    aliases: tuple[str, ...] = ()


class TermValue(ValueRecord):
    """Any other short expression: a thing, an activity, a title, a code."""

    type: Literal["term"] = "term"
    text: str
    aliases: tuple[str, ...] = ()


class DateValue(ValueRecord):
    """A calendar date as YYYY-MM-DD, or a month as YYYY-MM, or a year as YYYY."""

    type: Literal["date"] = "date"
    date: str = Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")

    @field_validator("date")
    @classmethod
    def _in_the_calendar(cls, value: str) -> str:
        try:
            date.fromisoformat(value + "-01-01"[len(value) - 4 :])
        except ValueError as error:
            raise ValueError(f"{value} is no day, month or year of the calendar") from error
        return value


class WeekdayValue(ValueRecord):
    """A day of the week, in English lower case."""

    type: Literal["weekday"] = "weekday"
    weekday: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class TimeValue(ValueRecord):
    """A time of day as HH:MM, 24 hours."""

    type: Literal["time"] = "time"
    time: str = Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")


class DurationValue(ValueRecord):
    """A length of time, in days (floats allowed: 0.5 is twelve hours)."""

    type: Literal["duration"] = "duration"
    days: float = Field(ge=0, allow_inf_nan=False)


class AmountValue(ValueRecord):
    """A number with its unit as people say it ("euros", "km"); no unit for a plain count."""

    type: Literal["amount"] = "amount"
    amount: float = Field(ge=0, allow_inf_nan=False)
    unit: str | None = None


class SetValue(ValueRecord):
    """Several members, all of which are asked for; order does not matter."""

    type: Literal["set"] = "set"
    members: tuple[NameValue | PlaceValue | TermValue, ...]


class OrderValue(ValueRecord):
    """Things in the order in which they happened."""

    type: Literal["order"] = "order"
    items: tuple[TermValue, ...]


Value = Annotated[
    NameValue
    | PlaceValue
    | TermValue
    | DateValue
    | WeekdayValue
    | TimeValue
    | DurationValue
    | AmountValue
    | SetValue
    | OrderValue,
    Field(discriminator="type"),
]
