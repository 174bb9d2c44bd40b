"""The rows that every table shares: backend and reader, over one run or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memarena.report.layout import Cell, Column
from memarena.scoring.results import RowScores, RunScores


@dataclass(frozen=True)
class ReportRow:
    """A row of scores with the number of its run, from 1."""

    run: int
    scores: RowScores


def rows_of(runs: Sequence[RunScores]) -> list[ReportRow]:
    """All rows, runs and cells in the order given; competitors before diagnostics within a run."""
    return [
        ReportRow(number, row)
        for number, run in enumerate(runs, 1)
        for row in sorted(run.rows, key=lambda r: r.diagnostic)
    ]


def lead_columns(rows: Sequence[ReportRow]) -> list[Column]:
    """Columns that name a row: its run where there are several, backend, reader."""
    several = len({row.run for row in rows}) > 1
    run = [Column("run", align="left")] if several else []
    return [*run, Column("backend", align="left"), Column("reader", align="left")]


def lead_cells(rows: Sequence[ReportRow], row: ReportRow) -> list[Cell]:
    """Cells that name a row."""
    several = len({r.run for r in rows}) > 1
    run = [Cell(str(row.run))] if several else []
    scores = row.scores
    return [*run, Cell(backend_name(rows, scores)), Cell(scores.reader if scores.real_reader else f"{scores.reader} †")]


def backend_name(rows: Sequence[ReportRow], row: RowScores) -> str:
    """The backend, ``◇`` behind a diagnostic one, its options where they tell it from another row."""
    twins = {r.scores.label for r in rows if r.scores.backend == row.backend and r.scores.reader == row.reader}
    options = ",".join(f"{k}={v}" for k, v in row.options.items()) if len(twins) > 1 else ""
    return row.backend + (f" [{options}]" if options else "") + (" ◇" if row.diagnostic else "")


def marks(rows: Sequence[ReportRow]) -> list[str]:
    """What the marks at names mean, as far as they are used."""
    found = []
    if any(row.scores.diagnostic for row in rows):
        found.append("◇ diagnostic: sees what a deployed memory cannot; outside the competition")
    if any(not row.scores.real_reader for row in rows):
        found.append("† no reader: picks a sentence of the context, no language model")
    return found
