"""How figures are written: shares in percent, times in milliseconds, ranges, and n/a where there is nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memarena.report.layout import Cell
from memarena.scoring.figures import Score
from memarena.scoring.results import AVG_WITHOUT_D6, RowScores
from memarena.scoring.uncertainty_records import Interval

NA = Cell("n/a", faint=True, absent=True)


def percent(share: float | None, digits: int = 1) -> Cell:
    """A share in percent."""
    return NA if share is None else Cell(f"{100 * share:.{digits}f}")


def score(figure: Score | None, *, so_far: bool = False, strong: bool = False) -> Cell:
    """A figure in percent with its standard deviation; ``~`` while incomplete.

    Where failures of ours leave a range, its ends; one figure where they leave no doubt.
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
    """A figure in percent with its 95% interval in whole percent, where there is one."""
    cell = score(figure, so_far=so_far)
    if interval is None or cell is NA:
        return cell
    doubt = " (few egos)" if interval.few_clusters else ""
    ends = f" [{100 * interval.low:.0f}–{100 * interval.high:.0f}]{doubt}"
    return Cell(cell.text + ends, spread=cell.spread and cell.spread + ends)


def few_egos(intervals: Iterable[tuple[str, Interval | None]]) -> str:
    """Which of the intervals, by name, rest on too few egos, and on how many; empty if none does.

    D6, and all that it goes into, rests on the egos with DENY items or those with ALLOW items, whichever are fewer:
    that can be less than a table has egos.
    """
    counts: dict[str, set[int]] = {}
    for name, interval in intervals:
        if interval is not None and interval.few_clusters:
            counts.setdefault(name, set()).add(interval.clusters)
    ranges = {name: sorted({min(some), max(some)}) for name, some in counts.items()}
    return ", ".join(f"{name} ({'–'.join(map(str, ends))})" for name, ends in ranges.items())


def signed(share: float | None) -> Cell:
    """A difference in points with its sign."""
    return NA if share is None else Cell(f"{100 * share:+.1f}")


def interval(low: float | None, high: float | None) -> Cell:
    """An interval in points."""
    return NA if low is None or high is None else Cell(f"[{100 * low:+.1f}, {100 * high:+.1f}]")


def milliseconds(value: float | None) -> Cell:
    """A time in milliseconds, to three significant digits below 100."""
    if value is None:
        return NA
    if value < 10:
        return Cell(f"{value:.2f}")
    return Cell(f"{value:.1f}" if value < 100 else f"{value:,.0f}")


def whole(count: int | None) -> Cell:
    """A count; 0 is faint."""
    return NA if count is None else Cell(f"{count:,}", faint=count == 0)


def number(value: float | None, digits: int = 1) -> Cell:
    """A plain number."""
    return NA if value is None else Cell(f"{value:,.{digits}f}")


def at_least(value: float | None, unknown: int, digits: int = 0) -> Cell:
    """A sum that lacks ``unknown`` unreported values: a lower bound, or n/a where none was reported."""
    if not unknown or value is None:
        return whole(int(value)) if value is not None and not digits else number(value, digits)
    return Cell(f"≥ {value:,.{digits}f}") if value else NA


def average_to_rank_by(rows: Sequence[RowScores]) -> str:
    """The average that orders rows of a table: Avg only if D6 tells something of every one that competes."""
    competing = [row for row in rows if not row.diagnostic] or rows
    return "Avg" if all(row.rank_by == "Avg" for row in competing) else AVG_WITHOUT_D6


def why_without_d6(rows: Sequence[RowScores]) -> list[str]:
    """One line on why rows are ranked without D6; none where they are not, or no D6 item was asked."""
    names = [row.label for row in rows if not row.diagnostic and row.permission and row.rank_by == AVG_WITHOUT_D6]
    if not names:
        return []
    return [
        f"rank by {AVG_WITHOUT_D6}: the 95% interval of J holds 0 for {', '.join(names)}, so D6, and Avg with it, may "
        "be chance there"
    ]


def is_headline(row: RowScores) -> bool:
    """Whether a row has a headline: every question asked, and each says something about the memory."""
    return row.counts.planned > 0 and row.counts.missing == 0 and row.counts.unmeasured == 0


def _competes(row: RowScores) -> bool:
    return not row.diagnostic and not row.own_model and not row.without_reader


def best(rows: Sequence[RowScores], metric: str) -> dict[str, float]:
    """The best headline of a metric among the competitors of each reader, where the intervals support that it is.

    No entry where none is: its 95% interval must lie above those of all others, over enough egos to be relied on.
    """
    fields: dict[str, list[RowScores]] = {}
    for row in rows:
        if _competes(row) and is_headline(row) and _value(row, metric) is not None:
            fields.setdefault(row.reader, []).append(row)
    bests = {}
    for reader, field in fields.items():
        top, *others = sorted(field, key=lambda row: -(_value(row, metric) or 0.0))
        if others and all(_above(top, other, metric) for other in others):
            bests[reader] = _value(top, metric) or 0.0
    return bests


def _above(row: RowScores, other: RowScores, metric: str) -> bool:
    ours, theirs = row.intervals.get(metric), other.intervals.get(metric)
    if ours is None or theirs is None or ours.few_clusters or theirs.few_clusters:
        return False
    return ours.low > theirs.high


def metric(row: RowScores, name: str, bests: Mapping[str, float] | None = None) -> Cell:
    """A metric of a row, marked where it is the best of its reader."""
    top = (bests or {}).get(row.reader)
    strong = top is not None and _competes(row) and is_headline(row) and _value(row, name) == top
    return score(row.metrics.get(name), so_far=row.counts.missing > 0, strong=strong)


def _value(row: RowScores, name: str) -> float | None:
    figure = row.metrics.get(name)
    return figure.value if figure else None
