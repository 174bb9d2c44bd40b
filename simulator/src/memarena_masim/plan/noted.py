"""What planning remembers between days; kept apart from the day being planned until that day is committed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Noted(Generic[T]):
    """A set whose additions count at once and last only if they are committed."""

    __slots__ = ("_lasting", "_today")

    def __init__(self) -> None:
        self._lasting: set[T] = set()
        self._today: set[T] = set()

    def __contains__(self, item: T) -> bool:
        return item in self._lasting or item in self._today

    def add(self, item: T) -> None:
        """Note something for the day that is being planned."""
        self._today.add(item)

    def begin_day(self) -> None:
        """Forget what was noted and not committed: a day that is planned twice is the same both times."""
        self._today = set()

    @property
    def today(self) -> frozenset[T]:
        """What was noted since the day began."""
        return frozenset(self._today)

    def commit(self, noted: frozenset[T]) -> None:
        """Midnight: what was noted on a day lasts."""
        self._lasting |= noted
        self._today = set()
