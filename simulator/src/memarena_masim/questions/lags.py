"""The lag between the last evidence and the question, spread evenly over the ranges that reports use."""

from __future__ import annotations

from collections import Counter

from memarena_dataset.model import Family

from memarena_masim.rng import Stream

LAGS = ((0, 0), (1, 3), (4, 7), (8, 14), (15, 365))
"""Days between the last evidence and the question, as reports bin them."""


def lag_bucket(days: int) -> tuple[int, int]:
    """The bucket that a lag falls in."""
    return next(bounds for bounds in LAGS if bounds[0] <= days <= bounds[1])


class LagDrawer:
    """Gives every question its day. Keeps count per family, so that buckets fill evenly as far as the world is long."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._counts: Counter[tuple[Family, tuple[int, int]]] = Counter()

    def day(self, stream: Stream, family: Family, last_evidence: int, earliest: int) -> int:
        """A day from ``earliest`` on for a question whose last evidence is of ``last_evidence``, counted."""
        day = self.propose(stream, family, last_evidence, earliest)
        self.count(family, day - last_evidence)
        return day

    def propose(self, stream: Stream, family: Family, last_evidence: int, earliest: int) -> int:
        """Such a day, not counted yet: the question may come to nothing."""
        fitting = {lag_bucket(day - last_evidence): None for day in range(max(earliest, last_evidence), self._days)}
        least = min(self._counts[family, bucket] for bucket in fitting)
        low, high = stream.pick([bucket for bucket in fitting if self._counts[family, bucket] == least])
        first = max(earliest, last_evidence + low)
        return stream.between(first, min(last_evidence + high, self._days - 1))

    def count(self, family: Family, lag: int) -> None:
        """Count a question that is asked ``lag`` days after its last evidence."""
        self._counts[family, lag_bucket(lag)] += 1
