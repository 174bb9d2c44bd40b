"""Builds the table of failed questions."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import percent, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, lead_cells, lead_columns, trace

_WHOSE = {"backend_failed": "backend", "infra_failed": "ours", "reader_not_applicable": "reader"}
"""By outcome, on whose side the failure is."""


def failure_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the counts of failed questions by cause."""
    body = [
        [
            *lead_cells(rows, row),
            Cell(_WHOSE[failure.outcome]),
            whole(failure.count),
            percent(failure.share),
            Cell(failure.cause),
        ]
        for row in rows
        for failure in row.scores.failures
    ]
    if not body:
        return None
    columns = [
        *lead_columns(rows),
        Column(
            "whose",
            "a backend's failure counts as wrong; ours, or a prompt that the reader cannot read, is never scored",
            align="left",
        ),
        Column("count"),
        Column("share", "of the questions asked, percent"),
        Column("cause", align="left"),
    ]
    with_failures = [row for row in rows if row.scores.failures]
    first = with_failures[0].scores.failures[0].outcome
    return section("Failed questions", columns, body, trace=trace(with_failures, f"--outcome {first}"))
