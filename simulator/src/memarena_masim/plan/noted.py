"""Defines a set for the planner's memory: additions of the planned day last only if the day is committed.

The ``Chooser`` (``plan/statements.py``) remembers in such sets what must not be stated twice.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Noted(Generic[T]):
    """A set whose additions are visible at once, but last only if they are committed."""

    __slots__ = ("_lasting", "_today")

    def __init__(self) -> None:
        self._lasting: set[T] = set()
        self._today: set[T] = set()

    def __contains__(self, item: T) -> bool:
        return item in self._lasting or item in self._today

    def __len__(self) -> int:
        return len(self._lasting | self._today)

    def add(self, item: T) -> None:
        """Add an item for the day that is being planned."""
        self._today.add(item)

    def begin_day(self) -> None:
        """Drop what was added since the last commit, so that planning a day twice gives the same plan."""
        self._today = set()

    @property
    def today(self) -> frozenset[T]:
        """Return what was added since the last ``begin_day`` or ``commit``."""
        return frozenset(self._today)

    def commit(self, noted: frozenset[T]) -> None:
        """Make a day's additions permanent, at midnight.

        ``noted`` is ``today`` as the plan of the day has it (``DayPlan.noted``). What was added since is dropped, so
        that the state depends on committed plans alone.
        """
        self._lasting |= noted
        self._today = set()
