"""Builds the tables of intervals and of variance by source, and, of D6, the reasons why facts were withheld."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.log.records import Bucket
from memarena.report.figures import NA, few_egos, percent, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns, trace_deny
from memarena.scoring.results import ANSWERABLE, AVG_WITHOUT_D6
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS, Interval, Variance

_HEADLINES = (ANSWERABLE, "Rec", "Rea", "Trust", "Avg", AVG_WITHOUT_D6, "Avg*")
_DIMENSIONS = ("D1", "D2", "D3", "D4", "D5", "D6")


def interval_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of 95% intervals of the headline figures; None if no row has any."""
    return _intervals(rows, "95% intervals", _HEADLINES)


def dimension_interval_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of 95% intervals of the dimensions; None if no row has any."""
    return _intervals(rows, "95% intervals of the dimensions", _DIMENSIONS)


def _intervals(rows: Sequence[ReportRow], title: str, names: Sequence[str]) -> Section | None:
    if not any(row.scores.intervals for row in rows):
        return None
    body = []
    for row in rows:
        intervals = row.scores.intervals
        clusters = {interval.clusters for interval in intervals.values()}
        cells = [_interval(intervals.get(name)) for name in names]
        body.append([*lead_cells(rows, row), *cells, whole(max(clusters, default=None))])
    notes = ["percent; bootstrap over egos, since the questions of one person (ego) share a history"]
    if with_few_egos := few_egos((name, row.scores.intervals.get(name)) for name in names for row in rows):
        notes.append(
            f"fewer than {FEWEST_CLUSTERS} egos behind {with_few_egos}: these intervals are too narrow to rely on"
        )
    all_intervals = [
        each_interval for row in rows for name in names if (each_interval := row.scores.intervals.get(name)) is not None
    ]
    if any(interval.low == interval.high for interval in all_intervals):
        notes.append("an interval without width: all egos have the same figure, which is not certainty")
    columns = [
        *lead_columns(rows),
        *(Column(n) for n in names),
        Column("egos", "clusters drawn; D6, and what it goes into, rests on those with the rarer kind of item"),
    ]
    return section(title, columns, body, notes, breaks=breaks(rows))


def _interval(interval: Interval | None) -> Cell:
    return NA if interval is None else Cell(f"{100 * interval.low:.1f}–{100 * interval.high:.1f}")


def variance_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of standard deviations by source, with the smallest detectable difference."""
    spreads = [
        (row, spread)
        for row in rows
        for spread in row.scores.variances
        if spread.metric in _HEADLINES and any(value is not None for value in _spreads(spread))
    ]
    if not spreads:
        return None
    columns = [
        Column("figure", align="left"),
        Column("answers", "sample standard deviation between seeds, points"),
        Column("judge", "between repeated verdicts on the same answers"),
        Column("egos", "between the figures of single egos"),
        Column("draw", "standard error over draws of egos"),
        Column("worlds", "between worlds"),
        Column("smallest", "smallest difference between two such rows that would be found with 80% power"),
    ]
    body = [
        [*lead_cells(rows, row), Cell(spread.metric), *(percent(value) for value in _spreads(spread))]
        for row, spread in spreads
    ]
    notes = ["percentage points; other figures are in the JSON report"]
    return section("Where the spread comes from", [*lead_columns(rows), *columns], body, notes)


def _spreads(spread: Variance) -> list[float | None]:
    return [
        spread.answer_sd,
        spread.judge_sd,
        spread.ego_sd,
        spread.ego_se,
        spread.world_sd,
        spread.smallest_difference,
    ]


def bucket_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the reasons why facts of DENY items were withheld; a diagnostic, in no score."""
    with_buckets = [row for row in rows if row.scores.permission and sum(row.scores.permission.buckets.values())]
    if not with_buckets:
        return None
    names: tuple[Bucket, ...] = ("no_access", "dont_know", "other")
    meanings = ("declined because the asker may not know", "says that it does not know the fact", "anything else")
    columns = [Column(name.replace("_", " "), meaning) for name, meaning in zip(names, meanings, strict=True)]
    body = []
    for row in with_buckets:
        permission = row.scores.permission
        counts = permission.buckets if permission else {}
        total = sum(counts.values())
        shares = [percent(counts.get(name, 0) / total if total else None) for name in names]
        named_by = permission.buckets_by if permission else ""
        body.append([*lead_cells(rows, row), whole(total), *shares, Cell(named_by)])
    notes = ["percent of the DENY items whose fact was withheld; diagnostic, in no score"]
    return section(
        "Reasons facts were withheld",
        [*lead_columns(rows), Column("kept"), *columns, Column("named by", align="left")],
        body,
        notes,
        breaks=breaks(with_buckets),
        trace=trace_deny(with_buckets, kept=True),
        trace_columns=[(name.replace("_", " "), f"--ground {name}") for name in names],
    )
