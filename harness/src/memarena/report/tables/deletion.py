"""Builds the table of the deletion probe: what Search still returns after Forget."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.report.figures import NA, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, lead_cells, lead_columns


def deletion_table(rows: Sequence[ReportRow]) -> Section | None:
    """Return the table of turns that were still found after Forget; None if there was no deletion probe."""
    body = [
        [
            *lead_cells(rows, row),
            Cell(probe.target),
            whole(probe.forgotten),
            whole(probe.failed),
            whole(probe.found_before),
            _share(probe.found_again, probe.found_before),
            _share(probe.answered_again, probe.found_before),
            whole(probe.controls),
            _share(probe.controls_lost, probe.controls),
        ]
        for row in rows
        for probe in row.scores.deletion
    ]
    if not body:
        return None
    columns = [
        *lead_columns(rows),
        Column("target", "what Forget was given: a session, the name of a person, the words of a fact", align="left"),
        Column("forgotten", "Forget calls that ended OK"),
        Column("failed"),
        Column("n", "turns that had to go and that Search had found before"),
        Column("found again", "of these, by Search afterwards, percent; 0 is what FORGET promises (FGT-2)"),
        Column("read again", "of these, among the items that an Answer was read from, percent"),
        Column("n kept", "turns of other sessions that Search had found before"),
        Column("lost", "of these, not found afterwards, percent: more was forgotten than asked for (FGT-3)"),
    ]
    return section("Deletion, apart from every score", columns, body)


def _share(part: int | None, of: int) -> Cell:
    return NA if part is None or not of else Cell(f"{100 * part / of:.1f}")
