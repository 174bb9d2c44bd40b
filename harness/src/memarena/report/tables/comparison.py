"""Formats comparisons of two rows as documents: paired on one data set, unpaired on two, or across worlds."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, few_egos
from memarena.report.layout import Cell, Column, Document, Fact, Section, section
from memarena.scoring.uncertainty_records import (
    FEWEST_CLUSTERS,
    Comparison,
    Interval,
    PairedDifference,
    Side,
    UnpairedComparison,
    UnpairedDifference,
    WorldsComparison,
)

_SIGNED = frozenset(("J", "J|known"))
"""Figures on their own scale instead of in percentage points."""


def comparison_document(comparison: Comparison) -> Document:
    """Return the document of a paired comparison of two rows or cells on one data set."""
    lines = [
        f"A         {_side(comparison.a)}",
        f"B         {_side(comparison.b)}",
        f"questions {comparison.questions:,} with a verdict on both sides, paired; {comparison.left_out:,} left out",
    ]
    notes = [*comparison.cautions]
    if with_few_egos := few_egos((d.metric, d.interval) for d in comparison.differences):
        notes.append(f"fewer than {FEWEST_CLUSTERS} egos behind {with_few_egos}: these intervals cannot be relied on")
    elif not any(d.interval for d in comparison.differences):
        notes.append(f"egos: fewer than 2; below {FEWEST_CLUSTERS} no interval can be relied on")
    columns = [
        *_columns(
            "percentage points; J on its own scale",
            "interval of the difference, over draws of egos",
            "diagnostic: egos of one world share its events",
        ),
        Column("least", "least difference that this pairing finds with 80% power"),
        Column("n", "questions behind the figure"),
        Column("A only", "of them: right in A only, or under more seeds"),
        Column("B only"),
    ]
    body = [
        [
            *difference_cells(d),
            _share(d.smallest_difference, d.metric),
            Cell(f"{d.questions:,}"),
            Cell(f"{d.only_a:,}"),
            Cell(f"{d.only_b:,}"),
        ]
        for d in comparison.differences
    ]
    return Document(
        "MemArena comparison",
        (Section("Comparison", tuple(lines), notes=tuple(notes)), section("A - B", columns, body)),
    )


def unpaired_document(comparison: UnpairedComparison) -> Document:
    """Return the document of an unpaired comparison of rows or cells on two data sets."""
    sides = zip((comparison.a, comparison.b), comparison.datasets, comparison.questions, strict=True)
    lines = [
        Fact(name, f"{_side(side)}: {questions:,} questions of {dataset}")
        for name, (side, dataset, questions) in zip("AB", sides, strict=True)
    ]
    notes = [*comparison.cautions]
    if with_few_egos := few_egos((d.metric, d.interval) for d in comparison.differences):
        notes.append(f"fewer than {FEWEST_CLUSTERS} egos behind {with_few_egos}: these intervals cannot be relied on")
    columns = _columns(
        "percentage points; J on its own scale; A public and B fresh: overfitting",
        "interval of the difference; egos of the two data sets are drawn independently",
        "diagnostic",
    )
    body = [difference_cells(difference) for difference in comparison.differences]
    head = Section("Comparison of two data sets, unpaired", tuple(lines), notes=tuple(notes))
    return Document("MemArena comparison", (head, section("A - B", columns, body)))


def worlds_document(comparison: WorldsComparison) -> Document:
    """Return the document of a comparison of two rows across worlds."""
    lines = [
        Fact("A", comparison.a_label),
        Fact("B", comparison.b_label),
        Fact("worlds", f"{len(comparison.run_ids)}: {', '.join(comparison.run_ids)}"),
    ]
    columns = [
        Column("figure", align="left"),
        Column("worlds"),
        Column("A - B", "mean over worlds, percentage points; J on its own scale"),
        Column("SD", "between worlds"),
        Column("95%", "Student's t over the worlds' differences; n/a below 8 worlds"),
        Column("p", "diagnostic"),
        Column("least", "least difference that so many worlds find with 80% power"),
    ]
    body = [
        [
            Cell(d.metric),
            Cell(str(len(d.worlds))),
            _difference(d.mean, d.metric),
            _share(d.world_sd, d.metric),
            _interval(d.interval, d.metric),
            _p(d.p_diagnostic),
            _share(d.smallest_difference, d.metric),
        ]
        for d in comparison.differences
    ]
    head = Section("Comparison across worlds", tuple(lines), notes=comparison.cautions)
    return Document("MemArena comparison", (head, section("A - B", columns, body)))


def _columns(difference: str, interval: str, p: str) -> list[Column]:
    """Return the columns of a comparison of two sides; the arguments are the meanings of three columns."""
    first = [Column("figure", align="left"), Column("A"), Column("B")]
    return [*first, Column("A - B", difference), Column("95%", interval), Column("p", p)]


def difference_cells(difference: PairedDifference | UnpairedDifference) -> list[Cell]:
    """Return the cells of a figure: name, A, B, A - B, interval, p."""
    metric = difference.metric
    return [
        Cell(metric),
        _share(difference.a, metric),
        _share(difference.b, metric),
        _difference(difference.difference, metric),
        _interval(difference.interval, metric),
        _p(difference.p_diagnostic),
    ]


def _side(side: Side) -> str:
    return f"{side.label} of run {side.run_id} (seeds {', '.join(side.seeds)})"


def _scaled(value: float, metric: str) -> tuple[float, int]:
    return (value, 3) if metric in _SIGNED else (100 * value, 1)


def _share(value: float | None, metric: str) -> Cell:
    if value is None:
        return NA
    scaled, digits = _scaled(value, metric)
    return Cell(f"{scaled:.{digits}f}")


def _difference(value: float | None, metric: str) -> Cell:
    if value is None:
        return NA
    scaled, digits = _scaled(value, metric)
    return Cell(f"{scaled:+.{digits}f}")


def _interval(value: Interval | None, metric: str) -> Cell:
    if value is None:
        return NA
    ends: Sequence[str] = [_difference(end, metric).text for end in (value.low, value.high)]
    return Cell(f"{ends[0]} … {ends[1]}")


def _p(value: float | None) -> Cell:
    if value is None:
        return NA
    return Cell("<0.001" if value < 0.001 else f"{value:.3f}")
