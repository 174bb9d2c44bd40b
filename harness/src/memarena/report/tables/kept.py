"""Builds the table of what memories extracted from sessions and stored, as they report it (``scoring/kept.py``)."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, number, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, breaks, lead_cells, lead_columns
from memarena.scoring.figures import Retention


def kept_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of extraction calls and stored memories; None if no memory reports them."""
    reporting = [row for row in rows if row.scores.kept is not None]
    if not reporting:
        return None
    columns = [
        Column("sessions", "given to the memory, of all egos"),
        Column("calls", "of an LLM for extraction, as the memory counts them; n/a: none, or not by the memory itself"),
        Column("unusable", "of these, percent with a reply of which nothing was used: empty, garbage, cut off"),
        Column("empty", "sessions of which nothing was stored, percent"),
        Column("lost", "sessions that failed although their day was committed"),
        Column("stored", "memories added"),
        Column("each", "memories added for each session given"),
        Column("changed", "memories changed"),
        Column("removed", "memories removed, by the memory's own decision"),
        Column("bare days", "days with sessions on which nothing was stored, percent"),
        Column("no item", "of the searches that ended OK, percent that found no item"),
    ]
    body = [[*lead_cells(reporting, row), *_cells(row.scores.kept)] for row in reporting if row.scores.kept is not None]
    return section("What the memory kept", [*lead_columns(reporting), *columns], body, breaks=breaks(reporting))


def _cells(kept: Retention) -> list[Cell]:
    calls = kept.extraction_calls
    return [
        whole(kept.sessions_given),
        whole(calls) if calls else NA,
        _share(kept.extraction_unusable, calls),
        _share(kept.extraction_empty, kept.sessions_given),
        whole(kept.sessions_failed),
        whole(kept.memories_stored),
        number(kept.memories_stored / kept.sessions_given, 2),
        whole(kept.memories_changed),
        whole(kept.memories_removed),
        _share(kept.days_nothing_stored, kept.days),
        _share(kept.searches_empty, kept.searches),
    ]


def _share(part: int, of: int) -> Cell:
    return number(100 * part / of) if of else NA
