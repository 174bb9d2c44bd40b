"""Counts what an engine had to do: requested, repaired, written offline, removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import JsonValue


class Tally:
    """Counts by two names: a group (``statements/detail``) and what happened (``repaired``)."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, group: str, what: str, count: int = 1) -> None:
        """Count something."""
        self._counts[group, what] += count

    def get(self, group: str, what: str) -> int:
        """A count; 0 if it never happened."""
        return self._counts[group, what]

    def as_json(self) -> dict[str, JsonValue]:
        """The counts, groups as nested objects, in a fixed order."""
        found: dict[str, JsonValue] = {}
        for (group, what), count in sorted(self._counts.items()):
            place = found
            for part in group.split("/"):
                inner = place.setdefault(part, {})
                assert isinstance(inner, dict)
                place = inner
            place[what] = count
        return found


def summed(counts: Iterable[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Counts of several days as one."""
    total: dict[str, JsonValue] = {}
    for one in counts:
        _add(total, one)
    return total


def _add(total: dict[str, JsonValue], one: Mapping[str, JsonValue]) -> None:
    for key, value in one.items():
        if isinstance(value, Mapping):
            inner = total.setdefault(key, {})
            assert isinstance(inner, dict)
            _add(inner, value)
        elif isinstance(value, int):
            before = total.get(key, 0)
            assert isinstance(before, int)
            total[key] = before + value
