"""Defines the kinds of value that a text can mention, and when two mentions mean the same.

A mention is a part of a text (``start`` and ``end`` are offsets in it) with every value that its words allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

Kind = Literal["date", "weekday", "time", "duration", "amount", "proper"]


@dataclass(frozen=True)
class PartialDate:
    """A date of which parts may be missing (None).

    ``around``: a period next to the date in place of the date itself (``week before``, ``weekend of``), else empty.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    around: str = ""

    @classmethod
    def of(cls, day: date) -> PartialDate:
        """Return a date with all its parts."""
        return cls(day.year, day.month, day.day)

    @property
    def whole(self) -> date | None:
        """The calendar day, or None if a part is missing or there is no such day."""
        if self.year is None or self.month is None or self.day is None or self.around:
            return None
        try:
            return date(self.year, self.month, self.day)
        except ValueError:
            return None

    def agrees(self, other: PartialDate) -> bool:
        """Whether the two could be the same day: each part that both have is equal."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return self.around == other.around and all(a is None or b is None or a == b for a, b in pairs)


@dataclass(frozen=True)
class DateMention:
    """A date, with every reading that its words allow (``3/4/2025``, ``last Friday``)."""

    start: int
    end: int
    readings: frozenset[PartialDate]
    kind: Literal["date"] = "date"

    @property
    def fineness(self) -> int:
        """3 if a reading has a day, 2 if a reading has a month, 1 if all have only a year."""
        return max(3 if r.day is not None else 2 if r.month is not None else 1 for r in self.readings)

    def same(self, other: Mention) -> bool:
        """Whether some reading of the one agrees with some reading of the other."""
        if isinstance(other, WeekdayMention):
            return other.same(self)
        return isinstance(other, DateMention) and any(a.agrees(b) for a in self.readings for b in other.readings)


@dataclass(frozen=True)
class WeekdayMention:
    """A bare day of the week; ``weekday`` counts from Monday as 0."""

    start: int
    end: int
    weekday: int
    kind: Literal["weekday"] = "weekday"

    def same(self, other: Mention) -> bool:
        """Whether the other is that weekday, or a date that falls on it."""
        if isinstance(other, DateMention):
            return any(r.whole is not None and r.whole.weekday() == self.weekday for r in other.readings)
        return isinstance(other, WeekdayMention) and other.weekday == self.weekday


@dataclass(frozen=True)
class TimeMention:
    """A time of day as minutes since midnight, with every reading (``3:15`` without a.m. or p.m. has two)."""

    start: int
    end: int
    minutes: frozenset[int]
    kind: Literal["time"] = "time"

    def same(self, other: Mention) -> bool:
        """Whether they share a reading."""
        return isinstance(other, TimeMention) and bool(self.minutes & other.minutes)


@dataclass(frozen=True)
class DurationMention:
    """A length of time in days; ``slack`` is what its unit leaves open (a month has 28 to 31 days)."""

    start: int
    end: int
    days: float
    slack: float
    kind: Literal["duration"] = "duration"

    def same(self, other: Mention) -> bool:
        """Whether the lengths agree within what their units leave open."""
        return isinstance(other, DurationMention) and self.is_about(other.days, other.slack)

    def is_about(self, days: float, slack: float = 0.0) -> bool:
        """Whether the length is ``days`` within the slack of both."""
        return abs(self.days - days) <= max(self.slack, slack) + 1e-6 * max(1.0, abs(days))


@dataclass(frozen=True)
class AmountMention:
    """A number with its unit, None for a plain one."""

    start: int
    end: int
    amount: float
    unit: str | None
    kind: Literal["amount"] = "amount"

    def same(self, other: Mention) -> bool:
        """Whether the numbers are equal and no unit contradicts."""
        return (
            isinstance(other, AmountMention)
            and abs(self.amount - other.amount) < 1e-9
            and (self.unit is None or other.unit is None or self.unit == other.unit)
        )


@dataclass(frozen=True)
class ProperMention:
    """A proper name as its words in lower case."""

    start: int
    end: int
    name: tuple[str, ...]
    kind: Literal["proper"] = "proper"

    def same(self, other: Mention) -> bool:
        """Whether the words of one are all among those of the other."""
        if not isinstance(other, ProperMention):
            return False
        mine, theirs = set(self.name), set(other.name)
        return mine <= theirs or theirs <= mine


Mention = DateMention | WeekdayMention | TimeMention | DurationMention | AmountMention | ProperMention
