"""Remembers what was stated to whom, so that facts are repeated, contradicted and replaced only as planned.

For the modules that choose statements (``plan/statements.py``); the ``Planner`` commits it day by day.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal

from memarena_dataset.values import DateValue

from memarena_masim.config import WorldConfig
from memarena_masim.plan.state import Fact, FactKind, Knowledge

Mark = Literal[
    "stated",  # fact, listener
    "drawn",  # speaker, and the happening, the source of a find, or the secret
    "versioned",  # fact with a second value
    "contradictor",  # fact, speaker who stated its second value
    "contradicted",  # fact, listener who heard both values
    "fated",  # find whose fate was stated
    "outdated",  # fact that a later fact replaces
    "passed_on",  # fact that people other than its subject stated
    "wished_again",  # fact, listener to whom it was stated with a second wish
]
"""What is remembered, and of which ids."""
Notes = Mapping[Mark, frozenset[tuple[str, ...]]]
_TOLD_FOR_DAYS = 150
"""Days for which people still tell of a happening: within half a year, a month needs no year."""


class History:
    """Remembers marks of facts and people. Those of a day are visible at once, but last only if it is committed."""

    def __init__(self, config: WorldConfig, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        """What each person knows from the days before."""
        self._epoch = self._date = config.calendar_epoch
        self._lasting, self._today = (defaultdict[Mark, set[tuple[str, ...]]](set) for _ in range(2))
        self.details_today: dict[str, dict[str, Fact]] = {}
        """Details that a subject stated since midnight, by subject and fact id."""

    def begin_day(self, day: int) -> None:
        """Drop what was noted since the last commit, so that planning a day twice gives the same plan."""
        self._date = self._epoch + timedelta(days=day)
        self._today.clear()
        self.details_today = {}

    @property
    def noted(self) -> Notes:
        """Return what was noted since the day began: by mark, the ids that have it."""
        return {mark: frozenset(marked) for mark, marked in self._today.items() if marked}

    def commit(self, noted: Notes) -> None:
        """Make a day's notes (``DayPlan.noted``) permanent, at midnight. What was noted since is dropped."""
        for mark, marked in noted.items():
            self._lasting[mark] |= marked
        self._today.clear()

    def add(self, mark: Mark, *ids: str) -> None:
        """Note that ids have a mark, for the day that is being planned."""
        self._today[mark].add(ids)

    def has(self, mark: Mark, *ids: str) -> bool:
        """Whether ids have a mark."""
        return ids in self._lasting[mark] or ids in self._today[mark]

    def count(self, mark: Mark) -> int:
        """Return how many have a mark."""
        return len(self._lasting[mark] | self._today[mark])

    def is_new(self, fact: Fact, hearers: Sequence[str]) -> bool:
        """Whether a fact was stated to none of ``hearers``."""
        return not any(self.has("stated", fact.fact_id, hearer) for hearer in hearers)

    def is_over(self, fact: Fact) -> bool:
        """Whether a fact is a detail whose date is before the day; such a detail is not stated."""
        value = fact.value.value
        return isinstance(value, DateValue) and fact.kind is FactKind.DETAIL and value.date < self._date.isoformat()

    def is_plain(self, fact: Fact) -> bool:
        """Whether a fact is a detail that all who know it may state: not guarded, contradicted, replaced or over."""
        changed = fact.supersedes or self.has("versioned", fact.fact_id) or self.has("outdated", fact.fact_id)
        return fact.kind is FactKind.DETAIL and not (fact.guarded or changed or self.is_over(fact))

    def is_recent(self, fact: Fact) -> bool:
        """Whether a fact is a happening of which people still tell."""
        return fact.happened is not None and (self._date - fact.happened).days <= _TOLD_FOR_DAYS
