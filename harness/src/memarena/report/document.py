"""Puts a report together from the scores of one run or several."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.details import (
    behaviour_table,
    failure_table,
    ingest_table,
    latency_table,
    permission_table,
    recall_by_family,
    retrieval_table,
    stopwatch_table,
)
from memarena.report.grid import (
    baseline_table,
    corrected_table,
    dimension_table,
    family_table,
    main_grid,
    slice_tables,
    token_f1_table,
)
from memarena.report.head import comparison_warnings, head_section
from memarena.report.layout import Document, Section
from memarena.report.rows import rows_of
from memarena.scoring.results import RunScores


def report_document(runs: Sequence[RunScores]) -> Document:
    """The whole report: what was run, the grid, and everything behind it. Empty sections are left out."""
    rows = rows_of(runs)
    heads = [head_section(n, run, several=len(runs) > 1) for n, run in enumerate(runs, 1)]
    warnings = comparison_warnings(runs)
    between = [Section("Between the runs", tuple(warnings))] if warnings else []
    parts: list[Section | None] = [
        *heads,
        *between,
        main_grid(rows),
        dimension_table(rows),
        family_table(rows),
        permission_table(rows),
        behaviour_table(rows),
        failure_table(rows),
        retrieval_table(rows),
        recall_by_family(rows),
        latency_table(rows),
        stopwatch_table(rows),
        ingest_table(rows),
        *slice_tables(rows),
        corrected_table(rows),
        token_f1_table(rows),
        baseline_table(runs),
    ]
    return Document("MemArena", tuple(part for part in parts if part is not None))


def score_document(run: RunScores) -> Document:
    """The dimension scores of a run."""
    rows = rows_of([run])
    parts = [head_section(1, run, several=False), main_grid(rows), dimension_table(rows), permission_table(rows)]
    return Document("MemArena scores", tuple(part for part in parts if part is not None))
