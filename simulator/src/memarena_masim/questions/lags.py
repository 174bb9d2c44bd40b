"""Draws the day of each question, so that lags after the last evidence spread evenly over the bins of reports.

A *lag* is the time for which a memory has to keep the evidence. If most questions came soon, reports could say nothing
of long lags.
"""

from __future__ import annotations

from collections import Counter

from memarena_dataset.model import Family

from memarena_masim.rng import Stream

LAGS = ((0, 0), (1, 3), (4, 7), (8, 14), (15, 365))
"""Bins of lags: first and last number of days between the last evidence and the question."""


def lag_bucket(days: int) -> tuple[int, int]:
    """Return the bin of LAGS that holds a lag."""
    return next(bounds for bounds in LAGS if bounds[0] <= days <= bounds[1])


class LagDrawer:
    """Draws the day of each question. Counts lags by family, so that bins that fit into the world fill evenly."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._counts: Counter[tuple[Family, tuple[int, int]]] = Counter()

    def day(self, stream: Stream, family: Family, last_evidence: int, earliest: int) -> int:
        """Draw a day from ``earliest`` on for a question whose last evidence is of ``last_evidence``, and count it."""
        day = self.propose(stream, family, last_evidence, earliest)
        self.count(family, day - last_evidence)
        return day

    def propose(self, stream: Stream, family: Family, last_evidence: int, earliest: int) -> int:
        """Draw such a day without counting it: the question may be dropped."""
        fitting = {lag_bucket(day - last_evidence): None for day in range(max(earliest, last_evidence), self._days)}
        least = min(self._counts[family, bucket] for bucket in fitting)
        low, high = stream.pick([bucket for bucket in fitting if self._counts[family, bucket] == least])
        first = max(earliest, last_evidence + low)
        return stream.between(first, min(last_evidence + high, self._days - 1))

    def count(self, family: Family, lag: int) -> None:
        """Count a question that is asked ``lag`` days after its last evidence."""
        self._counts[family, lag_bucket(lag)] += 1
