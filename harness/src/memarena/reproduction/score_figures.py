"""Computes figures from the scores of sweeps, in percent or points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from memarena.scoring.compare import choose, compare
from memarena.scoring.permission import pooled_permission
from memarena.scoring.results import RowScores
from memarena.scoring.run import ScoredRun

Value = float | None
_METRICS = {"F1": "F1_PU paper"}
"""Names of figures that differ from those in the report."""
_OF_DENY = {"no_access", "dont_know", "other", "leak", "refused", "refusals"}
"""Figures that are shares of the DENY items: questions whose asker may not know the fact."""


@dataclass(frozen=True)
class ScoredRow:
    """A row of scores with its run."""

    scores: RowScores
    run: ScoredRun


def of_row(row: RowScores, name: str, argument: str) -> Value:
    """Return a figure of one row: of a report, ``D1to5``, ``fam:FAMILY``, ``f1:FAMILY``, or a share of DENY items."""
    if name == "D1to5":
        return _mean([of_row(row, f"D{number}", "") for number in range(1, 6)])
    if name in {"fam", "f1"}:
        part = next((part for part in row.slices if part.by == "family" and part.key == argument), None)
        return None if part is None else percent(part.score.value if name == "fam" else part.token_f1)
    if name in _OF_DENY:
        return _of_deny(row, name)
    if name == "False Ref":
        utility = of_row(row, "Utility", "")
        return None if utility is None else 100 - utility
    metric = _METRICS.get(name, name)
    return percent(row.metrics[metric].value) if metric in row.metrics else None


def pooled(rows: Sequence[RowScores], name: str) -> Value:
    """Return ``U``, ``leak`` or ``F1`` of :func:`pooled_permission`, ``gap`` (leak less U), or ``cells``."""
    shares = pooled_permission(row.permission for row in rows)
    if shares is None:
        return None
    if name == "cells":
        return float(sum(len(row.headline_seeds) for row in rows))
    gap = shares.leaked - shares.utility
    return percent({"U": shares.utility, "leak": shares.leaked, "F1": shares.f1_pu, "gap": gap}[name])


def extreme(rows: Sequence[ScoredRow], name: str) -> Value:
    """Return the largest (``best``) or smallest difference of a family between the first and the second row."""
    if len(rows) != 2:
        return None
    first, second = ({s.key: s.score.value for s in row.scores.slices if s.by == "family"} for row in rows)
    gaps = [a - b for key, a in first.items() if a is not None and (b := second.get(key)) is not None]
    return percent(max(gaps) if name == "best" else min(gaps)) if gaps else None


def paired(row: ScoredRow, other: ScoredRow, metric: str, end: str) -> Value:
    """Return ``value``, ``low`` or ``high`` of the difference of two rows in a figure, paired by question."""
    comparison = compare(choose(row.run, row.scores.label), choose(other.run, other.scores.label))
    figure = "D6" if metric.startswith("D6") else metric
    difference = next((difference for difference in comparison.differences if difference.metric == figure), None)
    if difference is None:
        return None
    if end == "value":
        return percent(difference.difference)
    interval = difference.interval
    return None if interval is None else percent(interval.low if end == "low" else interval.high)


def percent(share: Value) -> Value:
    """Return a share of 1 as percent."""
    return None if share is None else 100 * share


def _of_deny(row: RowScores, name: str) -> Value:
    """Return the share of a row's DENY items with an outcome of _OF_DENY; None if it has no such items."""
    permission = row.permission
    if permission is None or not permission.deny:
        return None
    if name == "refusals":
        return percent(permission.real_refusals)
    labels, buckets = permission.deny_labels, {str(bucket): count for bucket, count in permission.buckets.items()}
    counts = {
        "leak": labels.get("disclosed", 0),
        "refused": labels.get("refuse", 0) + labels.get("dont_know", 0),
    }
    return percent(counts.get(name, buckets.get(name, 0)) / permission.deny)


def _mean(values: Iterable[Value]) -> Value:
    """Return the mean; None if a value is missing."""
    all_values = list(values)
    present = [value for value in all_values if value is not None]
    return fmean(present) if len(present) == len(all_values) else None
