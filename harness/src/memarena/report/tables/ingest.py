"""Builds the table of the cost of ingest."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, at_least, number, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns
from memarena.scoring.figures import Ingest


def ingest_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of the cost of ingest; None if no row has ingested."""
    if not any(row.scores.ingest for row in rows):
        return None
    columns = [
        Column("days", "days of all egos"),
        Column("sessions"),
        Column("seconds"),
        Column("sessions/s"),
        Column("MB/s", "serialised bytes of the frames"),
        Column("model calls", "through the gateway, during ingest"),
        Column("prompt tokens"),
        Column("models s", "seconds that models took over these calls"),
        Column("failed", "calls that did not end OK"),
    ]
    body = []
    for row in rows:
        ingest = row.scores.ingest
        cells = [NA] * 9
        if ingest is not None:
            cells = [
                whole(ingest.days),
                whole(ingest.sessions),
                number(ingest.seconds, 2),
                number(ingest.sessions_per_s),
                number(ingest.mb_per_s, 2),
                *([NA] * 3 if row.scores.own_model else _models(ingest)),
                whole(ingest.failed),
            ]
        body.append([*lead_cells(rows, row, of_times=True), *cells])
    return section("Ingest", [*lead_columns(rows), *columns], body, _unknown_calls(rows), breaks=breaks(rows))


def _models(ingest: Ingest) -> list[Cell]:
    return [
        whole(ingest.model_calls),
        at_least(ingest.prompt_tokens, ingest.unsized_calls),
        at_least(ingest.model_seconds if ingest.model_calls else None, ingest.untimed_calls, 2),
    ]


def _unknown_calls(rows: Sequence[ReportRow]) -> list[str]:
    """Return notes on what the lower bounds (≥) of the table do not include."""
    ingests = [row.scores.ingest for row in rows if row.scores.ingest]
    without_size, without_time = sum(f.unsized_calls for f in ingests), sum(f.untimed_calls for f in ingests)
    notes = []
    if without_size:
        notes.append(f"≥: {without_size:,} model calls of unknown size: cut short, or the server reports no tokens")
    if without_time:
        notes.append(
            f"≥: {without_time:,} model calls whose end was not observed count up to their last content, or not at all"
        )
    return notes
