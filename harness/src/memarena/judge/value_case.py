"""An answer beside what it is held against when the value judge reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from memarena.dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, Gold, TextGold
from memarena.dataset.values import OrderValue, SetValue, Value
from memarena.log.records import EvidenceSession
from memarena.text.mentions import DateMention, Mention, PartialDate, WeekdayMention
from memarena.text.reading import ReadText, read_text
from memarena.text.stating import ScalarValue

FIRST_WORDS = 60
"""An answer has to come to the point within so many words."""
EXTRA_VALUES = 2
"""So many values of a type beyond the gold's may be named."""
OpenGold = TextGold | CounterfactualGold | ConflictGold | AnaphoraGold
"""Gold of open answers, which this judge judges."""


@dataclass(frozen=True)
class Case:
    """One answer beside what it is held against. ``answer`` holds its first 60 words."""

    answer: ReadText
    question: ReadText
    evidence: Sequence[EvidenceSession]
    required: tuple[ScalarValue, ...]
    """Every scalar value that a right answer states."""
    barred: tuple[ScalarValue, ...] = ()
    """Values that a right answer may mention only to deny them (the premise of a counterfactual)."""
    versions: bool = False
    """Whether the values are versions of one thing: then ``one of them said`` tells them apart and hedges nothing."""

    @cached_property
    def evidence_mentions(self) -> tuple[Mention, ...]:
        """Values in the evidence: those said, and the days on which they were said."""
        found: list[Mention] = []
        for session in self.evidence:
            found += read_text(f"{session.started_at} {session.place or ''} {session.group or ''}").mentions
            for turn in session.turns:
                said_at = turn.said_at or session.started_at
                said = read_text(turn.text, day_of(said_at))
                found += [*said.mentions, *_days_meant(said)]
                found += read_text(f"{said_at} {turn.speaker}").mentions
        return tuple(found)

    @cached_property
    def evidence_days(self) -> tuple[Mention, ...]:
        """The days on which the evidence was said."""
        days = dict.fromkeys((t.said_at or s.started_at)[:10] for s in self.evidence for t in s.turns)
        return tuple(m for day in days for m in read_text(day).of_kind("date"))


def _days_meant(said: ReadText) -> list[DateMention]:
    """Bare weekdays as the days they can mean: those within a week of the day on which they were said."""
    if said.today is None:
        return []
    near = [said.today + timedelta(days=offset) for offset in range(-7, 8)]
    return [
        DateMention(m.start, m.end, frozenset(PartialDate.of(day) for day in near if day.weekday() == m.weekday))
        for m in said.mentions
        if isinstance(m, WeekdayMention)
    ]


def day_of(moment: str) -> date | None:
    """The day of an RFC 3339 moment; None where it is none."""
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None


def first_words(text: str, count: int = FIRST_WORDS) -> str:
    """The text up to its ``count``-th word."""
    ends = [m.end() for m in re.finditer(r"\S+", text)]
    return text if len(ends) <= count else text[: ends[count - 1]]


def describe(value: Value) -> str:
    """A value in a few words, for reasons."""
    if isinstance(value, SetValue):
        return " + ".join(describe(m) for m in value.members)
    if isinstance(value, OrderValue):
        return " → ".join(i.text for i in value.items)
    fields = value.model_dump(exclude={"type", "aliases"}, exclude_none=True)
    return f"{value.type} {' '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in fields.values())}"


def required_values(gold: Gold) -> tuple[Value, ...]:
    """Typed values that a right answer states; empty where the gold is not fully typed."""
    if isinstance(gold, ConflictGold):
        return (*gold.values, *gold.changed_values) if gold.values and gold.changed_values else ()
    return gold.values


def scalars(values: Sequence[Value]) -> tuple[ScalarValue, ...]:
    """The values with the members of sets and the items of orders in their place."""
    flat: list[ScalarValue] = []
    for value in values:
        if isinstance(value, SetValue):
            flat += value.members
        elif isinstance(value, OrderValue):
            flat += value.items
        else:
            flat.append(value)
    return tuple(flat)
