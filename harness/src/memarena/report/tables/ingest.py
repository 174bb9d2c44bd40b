"""The table of ingest."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, at_least, number, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns
from memarena.scoring.results import Ingest


def ingest_table(rows: Sequence[ReportRow]) -> Section | None:
    """The cost of ingest."""
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
        found = row.scores.ingest
        cells = [NA] * 9
        if found is not None:
            cells = [
                whole(found.days),
                whole(found.sessions),
                number(found.seconds, 2),
                number(found.sessions_per_s),
                number(found.mb_per_s, 2),
                *([NA] * 3 if row.scores.own_model else _models(found)),
                whole(found.failed),
            ]
        body.append([*lead_cells(rows, row), *cells])
    return section("Ingest", [*lead_columns(rows), *columns], body, _unknown_calls(rows), breaks=breaks(rows))


def _models(found: Ingest) -> list[Cell]:
    return [
        whole(found.model_calls),
        at_least(found.prompt_tokens, found.unsized_calls),
        at_least(found.model_seconds if found.model_calls else None, found.untimed_calls, 2),
    ]


def _unknown_calls(rows: Sequence[ReportRow]) -> list[str]:
    """What the lower bounds of the table leave out."""
    found = [row.scores.ingest for row in rows if row.scores.ingest]
    unsized, untimed = sum(f.unsized_calls for f in found), sum(f.untimed_calls for f in found)
    notes = []
    if unsized:
        notes.append(f"≥: {unsized:,} model calls of unknown size: cut short, or the server reports no tokens")
    if untimed:
        notes.append(
            f"≥: {untimed:,} model calls whose end was not observed count up to their last content, or not at all"
        )
    return notes
