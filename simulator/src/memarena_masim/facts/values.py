"""Draws typed values of facts, and writes them as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from memarena_dataset.values import (
    AmountValue,
    DateValue,
    NameValue,
    PlaceValue,
    TermValue,
    TimeValue,
    Value,
    WeekdayValue,
)

from memarena_masim.config import NEAREST_DATE_DAYS
from memarena_masim.errors import MasimError
from memarena_masim.rng import Stream

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
TYPES = ("amount", "time", "weekday", "date", "name", "place", "term")
_RANGE = re.compile(r"(\d{1,2}:\d\d|\d{1,9})\.\.(\d{1,2}:\d\d|\d{1,9})(?: step ([1-9]\d{0,8}))?")
_TITLES = ("Dr", "Mr", "Ms")
"""Titles that a right answer may leave out: the name is the value, and the name with its title an alias."""


@dataclass(frozen=True, slots=True)
class SpokenValue:
    """A value and the words in which it is said."""

    value: Value
    text: str

    def slots(self) -> dict[str, str]:
        """Return the slots that a statement's sentence may use: ``v`` is the text, ``n`` the number of an amount."""
        number = f"{self.value.amount:g}" if isinstance(self.value, AmountValue) else self.text
        return {"v": self.text, "n": number}


@dataclass(frozen=True, slots=True)
class ValueKind:
    """How values of an attribute are drawn: from ``choices``, or from a range of numbers, dates or digits."""

    type: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    step: int = 1
    digits: int = 0

    @classmethod
    def parse(cls, type_name: str, unit: str, values: object, where: str) -> ValueKind:
        """Parse a file's ``values``: a list, ``low..high step n`` (times: n minutes), ``digits n`` or ``dates``."""
        if type_name not in TYPES:
            raise MasimError(f"{where}.type: {type_name!r}; one of {', '.join(TYPES)} is expected")
        if isinstance(values, list) and all(isinstance(value, str) for value in values) and len(values) >= 5:
            return cls(type_name, unit, choices=tuple(values))
        if values == "dates":
            return cls(type_name, unit, low=NEAREST_DATE_DAYS, high=165)
        if match := re.fullmatch(r"digits ([1-9]|1\d)", str(values)):
            return cls(type_name, unit, digits=int(match.group(1)))
        if match := _RANGE.fullmatch(str(values)):
            low, high = map(_minutes if type_name == "time" else int, match.groups()[:2])
            if low < high:
                return cls(type_name, unit, low=low, high=high, step=int(match.group(3) or 1))
        raise MasimError(
            f"{where}.values: a list of five or more texts, 'low..high step n', 'digits n' or 'dates' expected"
        )

    def draw(self, stream: Stream, epoch: date) -> SpokenValue:
        """Draw a value."""
        if self.digits:
            return self.said("".join(str(stream.below(10)) for _ in range(self.digits)), epoch)
        if self.choices:
            return self.said(stream.pick(self.choices), epoch)
        number = self.low + self.step * stream.below((self.high - self.low) // self.step + 1)
        return self.said(f"{number // 60:02d}:{number % 60:02d}" if self.type == "time" else str(number), epoch)

    def other(self, stream: Stream, epoch: date, than: SpokenValue) -> SpokenValue:
        """Draw a value that differs from ``than``."""
        while True:
            drawn = self.draw(stream, epoch)
            if drawn.text != than.text:
                return drawn

    def said(self, raw: str, epoch: date) -> SpokenValue:
        """Return the typed value for a drawn text, and its spoken form."""
        value: Value
        text = raw
        match self.type:
            case "amount":
                text = f"{raw} {self.unit}" if self.unit != "pieces" else raw
                value = AmountValue(amount=float(raw), unit=self.unit if self.unit != "pieces" else None)
            case "time":
                value, text = TimeValue(time=raw), clock_words(raw)
            case "weekday":
                value, text = WeekdayValue.model_validate({"weekday": raw}), raw.capitalize()
            case "date":
                day = epoch + timedelta(days=int(raw))
                value, text = DateValue(date=day.isoformat()), date_words(day)
            case "name":
                title, _, rest = raw.partition(". ")
                value = NameValue(name=rest, aliases=(raw,)) if title in _TITLES else NameValue(name=raw)
            case "place":
                value = PlaceValue(name=raw)
            case _:
                value = TermValue(text=raw)
        return SpokenValue(value, text)


def _minutes(time: str) -> int:
    hours, _, minutes = time.partition(":")
    return 60 * int(hours) + int(minutes or 0)


def clock_words(time: str) -> str:
    """Return a time in words: ``4:35 pm`` for ``16:35``."""
    hour, minute = int(time[:2]), time[3:]
    return f"{(hour - 1) % 12 + 1}:{minute} {'am' if hour < 12 else 'pm'}"


def date_words(day: date) -> str:
    """Return a day in words: ``March 14``."""
    return f"{MONTHS[day.month - 1]} {day.day}"


_AGO = {8: "eight days ago", 9: "nine days ago", 10: "ten days ago"}
_AGO |= {7 * weeks: f"{words} ago to the day" for weeks, words in enumerate(("a week", "two weeks", "three weeks"), 1)}
"""Only phrases that mean a single day: "three weeks ago" may be any day of a week, "… to the day" is one."""


def day_words(said_on: date, day: date) -> str:
    """Return an earlier day as a person says it: ``yesterday``, ``on Tuesday``, ``ten days ago``, ``on March 14``."""
    back = (said_on - day).days
    if back in _AGO:
        return _AGO[back]
    if back == 0:
        return "today"
    if back == 1:
        return "yesterday"
    if back < 7:
        return f"on {WEEKDAYS[day.weekday()]}"
    return f"on {date_words(day)}"
