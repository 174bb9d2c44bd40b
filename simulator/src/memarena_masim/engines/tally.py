"""Counts the steps of an engine: requested, repaired, written offline, removed."""

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
        """Return a count; 0 if it never happened."""
        return self._counts[group, what]

    def as_json(self) -> dict[str, JsonValue]:
        """Return the counts, with groups as nested objects, in a fixed order."""
        nested: dict[str, JsonValue] = {}
        for (group, what), count in sorted(self._counts.items()):
            level = nested
            for part in group.split("/"):
                inner = level.setdefault(part, {})
                assert isinstance(inner, dict)
                level = inner
            level[what] = count
        return nested


def summed(counts: Iterable[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the sum of the counts of several days."""
    total: dict[str, JsonValue] = {}
    for counted in counts:
        _add(total, counted)
    return total


def _add(total: dict[str, JsonValue], counted: Mapping[str, JsonValue]) -> None:
    for key, value in counted.items():
        if isinstance(value, Mapping):
            inner = total.setdefault(key, {})
            assert isinstance(inner, dict)
            _add(inner, value)
        elif isinstance(value, int):
            before = total.get(key, 0)
            assert isinstance(before, int)
            total[key] = before + value
