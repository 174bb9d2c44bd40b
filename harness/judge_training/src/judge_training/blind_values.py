"""Reads a blind set of answers to questions with typed gold, in a form that the value judge can judge."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.gold import ConflictGold, Gold, TextGold
from memarena_dataset.model import Family
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
from memarena_dataset.values.mentions import (
    AmountMention,
    DateMention,
    DurationMention,
    TimeMention,
    WeekdayMention,
)
from memarena_dataset.values.reading import read_text

from judge_training.task import text_of

TERMS = ("thing", "colour", "food", "profession", "title", "name", "means of transport", "set of things")
PLACES = ("place", "city", "set of places")
SORTS = {
    "d2_conflict": "conflict",
    "d2_single": "single",
    "d4_ordering": "ordering",
    "d4_interval": "interval",
    "d4_temporal": "temporal",
    "amount": "amount",
    "time_of_day": "time",
    "place": "place",
    "person_name": "name",
    "set": "set",
}
FAMILIES = {"d2_conflict": Family.CONFLICT, "d4_ordering": Family.TEMPORAL, "d4_temporal": Family.TEMPORAL}


@dataclass(frozen=True)
class Blind:
    """One labelled answer with its gold as typed values."""

    sort: str
    family: Family
    question: str
    gold: Gold
    answer: str
    right: bool
    said: tuple[str, ...]
    """All right answers to the question. They serve as its evidence, which the file does not have."""


def blind_values(path: Path) -> Iterator[Blind]:
    """Yield every answer of a file whose gold can be expressed in typed values; prose golds and reasons are skipped."""
    rows = [json.loads(line) for line in text_of(path).splitlines()]
    for row in rows:
        right_answers = tuple(
            other["answer"] for other in rows if other["question"] == row["question"] and other["right"]
        )
        gold = _gold(row["family"], row["gold_type"], row["gold"])
        if gold is not None:
            family = FAMILIES.get(row["family"], Family.QA)
            yield Blind(SORTS[row["family"]], family, row["question"], gold, row["answer"], row["right"], right_answers)


def _gold(family: str, kind: str, text: str) -> Gold | None:
    """Return a gold with typed values; None if the text cannot be expressed so."""
    if family == "d2_conflict":
        match = re.fullmatch(r"first (.+), later (.+)", text)
        values = [_value(kind, part) for part in match.groups()] if match else []
        if len(values) != 2 or None in values:
            return None
        first, later = (v for v in values if v is not None)
        assert match is not None
        return ConflictGold(original_detail=match[1], changed_detail=match[2], values=(first,), changed_values=(later,))
    if family not in SORTS:
        return None
    value = _set(kind, text) if kind.startswith("set") else _order(kind, text) or _value(kind, text)
    return TextGold(answers=(text,), values=(value,)) if value is not None else None


def _set(kind: str, text: str) -> SetValue | None:
    members = [_value({"set of people": "person"}.get(kind, kind), part.strip()) for part in text.split(";")]
    usable = tuple(m for m in members if isinstance(m, NameValue | PlaceValue | TermValue))
    return SetValue(members=usable) if len(usable) == len(members) else None


def _order(kind: str, text: str) -> OrderValue | None:
    return OrderValue(items=tuple(TermValue(text=i) for i in text.split(", "))) if kind == "order of three" else None


def _value(kind: str, text: str) -> Value | None:  # noqa: PLR0911 (a return for each type)
    """Return the typed value of a text of this kind; None if it cannot be read."""
    bare = re.sub(r"^(?:the|a|an|his|her|by|in|on|at|she is a|some) ", "", text)
    if kind in TERMS:
        return TermValue(text=bare)
    if kind in PLACES:
        return PlaceValue(name=re.sub(r"^the ", "", bare))
    if kind in ("person", "person first"):
        return NameValue(name=bare, aliases=tuple(bare.split()) if " " in bare else ())
    mentions = [m for m in read_text(bare).mentions if m.kind != "proper"]
    mention = mentions[0] if mentions else None
    if isinstance(mention, WeekdayMention):
        return WeekdayValue(weekday=WEEKDAYS[mention.weekday])  # type: ignore[arg-type]
    if isinstance(mention, DateMention):
        reading = next(iter(mention.readings))
        if reading.year is None:
            return None
        parts = [f"{reading.year:04d}", *(f"{p:02d}" for p in (reading.month, reading.day) if p)]
        return DateValue(date="-".join(parts))
    if isinstance(mention, TimeMention):
        minutes = max(mention.minutes) if len(mention.minutes) == 1 else min(mention.minutes)
        return TimeValue(time=f"{minutes // 60:02d}:{minutes % 60:02d}")
    if isinstance(mention, DurationMention):
        return DurationValue(days=mention.days)
    if isinstance(mention, AmountMention):
        return AmountValue(amount=mention.amount, unit=mention.unit)
    return None
