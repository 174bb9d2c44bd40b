"""Formats figures as table cells: shares in percent, times in milliseconds, ranges; ``n/a`` for a missing value.

All tables use it, so that a figure looks the same everywhere. It also decides which figure is shown as best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memarena.report.layout import Cell
from memarena.scoring.figures import Score
from memarena.scoring.results import AVG_WITHOUT_D6, RowScores
from memarena.scoring.uncertainty_records import Interval

NA = Cell("n/a", faint=True, absent=True)


def percent(share: float | None, digits: int = 1) -> Cell:
    """Format a share (0 to 1) in percent."""
    return NA if share is None else Cell(f"{100 * share:.{digits}f}")


def score(figure: Score | None, *, so_far: bool = False, strong: bool = False) -> Cell:
    """Format a score in percent with its standard deviation over seeds.

    A score without a value, because some questions are unmeasured, has its range ``low…high``, or a single figure if
    both ends are equal. ``so_far``: prefix ``~``, since questions are still to be asked.
    """
    if figure is None or figure.low is None or figure.high is None:
        return NA
    mark = "~" if so_far else ""
    if figure.value is None:
        low, high = f"{100 * figure.low:.1f}", f"{100 * figure.high:.1f}"
        return Cell(f"{mark}{low}" if low == high else f"{mark}{low}…{high}")
    spread = "" if figure.sd is None else f" ±{100 * figure.sd:.1f}"
    return Cell(f"{mark}{100 * figure.value:.1f}{spread}", strong=strong, spread=spread)


def score_with_interval(figure: Score | None, interval: Interval | None, *, so_far: bool = False) -> Cell:
    """Format a score in percent with its 95% interval, if any, in whole percent."""
    cell = score(figure, so_far=so_far)
    if interval is None or cell is NA:
        return cell
    few_egos_note = " (few egos)" if interval.few_clusters else ""
    ends = f" [{100 * interval.low:.0f}–{100 * interval.high:.0f}]{few_egos_note}"
    return Cell(cell.text + ends, spread=cell.spread and cell.spread + ends)


def few_egos(intervals: Iterable[tuple[str, Interval | None]]) -> str:
    """Return the names of the intervals that rest on too few egos, with the number of egos; empty if there is none.

    D6, and scores that include it, rest on the egos with DENY items or those with ALLOW items, whichever are fewer,
    which may be fewer than the egos of the table.
    """
    counts: dict[str, set[int]] = {}
    for name, interval in intervals:
        if interval is not None and interval.few_clusters:
            counts.setdefault(name, set()).add(interval.clusters)
    ranges = {name: sorted({min(cluster_counts), max(cluster_counts)}) for name, cluster_counts in counts.items()}
    return ", ".join(f"{name} ({'–'.join(map(str, ends))})" for name, ends in ranges.items())


def signed(share: float | None) -> Cell:
    """Format a difference of shares in percentage points, with its sign."""
    return NA if share is None else Cell(f"{100 * share:+.1f}")


def interval(low: float | None, high: float | None) -> Cell:
    """Format an interval of a difference in percentage points."""
    return NA if low is None or high is None else Cell(f"[{100 * low:+.1f}, {100 * high:+.1f}]")


def milliseconds(value: float | None) -> Cell:
    """Format a time in milliseconds: two decimals below 10, one below 100, none above."""
    if value is None:
        return NA
    if value < 10:
        return Cell(f"{value:.2f}")
    return Cell(f"{value:.1f}" if value < 100 else f"{value:,.0f}")


def whole(count: int | None) -> Cell:
    """Format a count; 0 is faint."""
    return NA if count is None else Cell(f"{count:,}", faint=count == 0)


def number(value: float | None, digits: int = 1) -> Cell:
    """Format a number with ``digits`` decimals."""
    return NA if value is None else Cell(f"{value:,.{digits}f}")


def at_least(value: float | None, unknown: int, digits: int = 0) -> Cell:
    """Format a sum that lacks ``unknown`` unreported values: as a lower bound, or n/a if none was reported."""
    if not unknown or value is None:
        return whole(int(value)) if value is not None and not digits else number(value, digits)
    return Cell(f"≥ {value:,.{digits}f}") if value else NA


def average_to_rank_by(rows: Sequence[RowScores]) -> str:
    """Return the average that ranks a table: Avg if every competing row is ranked by it, else the one without D6."""
    competing = [row for row in rows if not row.diagnostic] or rows
    return "Avg" if all(row.rank_by == "Avg" for row in competing) else AVG_WITHOUT_D6


def why_without_d6(rows: Sequence[RowScores]) -> list[str]:
    """Return a line on why rows are ranked without D6; empty if they are not, or if no D6 item was asked."""
    names = [row.label for row in rows if not row.diagnostic and row.permission and row.rank_by == AVG_WITHOUT_D6]
    if not names:
        return []
    return [
        f"rank by {AVG_WITHOUT_D6}: the 95% interval of J holds 0 for {', '.join(names)}, so D6, and Avg with it, may "
        "be chance there"
    ]


def is_headline(row: RowScores) -> bool:
    """Whether a row has headline figures: every question was asked and none is without a measurement."""
    return row.counts.planned > 0 and row.counts.missing == 0 and row.counts.unmeasured == 0


def _competes(row: RowScores) -> bool:
    """Whether a row may be best: no diagnostic, no models of the backend's own, every answer made by the reader."""
    return not row.diagnostic and not row.own_model and not row.without_reader


def best(rows: Sequence[RowScores], metric: str) -> dict[str, float]:
    """Return by reader the best headline value of a metric among the competing rows, if the intervals support it.

    They do if its 95% interval lies above those of all other rows and all rest on enough egos; else no entry.
    """
    by_reader: dict[str, list[RowScores]] = {}
    for row in rows:
        if _competes(row) and is_headline(row) and _value(row, metric) is not None:
            by_reader.setdefault(row.reader, []).append(row)
    bests = {}
    for reader, competing in by_reader.items():
        top, *others = sorted(competing, key=lambda row: -(_value(row, metric) or 0.0))
        if others and all(_above(top, other, metric) for other in others):
            bests[reader] = _value(top, metric) or 0.0
    return bests


def _above(row: RowScores, other: RowScores, metric: str) -> bool:
    upper, lower = row.intervals.get(metric), other.intervals.get(metric)
    if upper is None or lower is None or upper.few_clusters or lower.few_clusters:
        return False
    return upper.low > lower.high


def metric(row: RowScores, name: str, bests: Mapping[str, float] | None = None) -> Cell:
    """Format a metric of a row; strong if it is the best of its reader, by ``bests`` of :func:`best`."""
    top = (bests or {}).get(row.reader)
    strong = top is not None and _competes(row) and is_headline(row) and _value(row, name) == top
    return score(row.metrics.get(name), so_far=row.counts.missing > 0, strong=strong)


def _value(row: RowScores, name: str) -> float | None:
    figure = row.metrics.get(name)
    return figure.value if figure else None
