"""Builds the table of a ranking: the columns of a report's summary table, and group, version, certificate and device.

Figures link to the answers behind them, names to the page of the memory, certificates to the page of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memarena.report.brief import brief_table
from memarena.report.layout import Cell, Column, Section, Table
from memarena.site.boards import Board, BoardRow
from memarena.site.entries import Entry, unique_slug

ANSWERS = "answers"
"""Anchor on the page of an entry for the answers behind its figures."""
GROUP_MEANS = (
    "by answerable: every 95% interval of a group lies above every interval of the next one, so the order of groups "
    "holds, and within a group there is none; – where a row is in no order"
)
"""Explanation of the column ``group``."""
_NAMES = 2
"""Number of leading columns of the summary's table that name a row: memory and reader."""


def ranking_table(board: Board, up: str, *, most: int | None = None) -> Section:
    """Return the table of a ranking, with its first ``most`` rows, or with all if that is None.

    ``up`` is the relative path to the site's folder.
    """
    first_rows = board.rows[:most]
    section = brief_table([row.brief for row in first_rows], board.title)
    assert section.table is not None
    columns = [
        Column("group", GROUP_MEANS, align="left"),
        section.table.columns[0],
        Column("version", "of the memory", align="left"),
        Column("certified", "what the bundle certifies; the page has its key and command", align="left"),
        *section.table.columns[_NAMES:],
        Column("device", align="left"),
    ]
    rows = [_row(cells, row, up) for cells, row in zip(section.table.rows, first_rows, strict=True)]
    table = Table(tuple(columns), tuple(rows), tuple(_breaks(first_rows)))
    return replace(section, table=table, notes=section.notes, key=f"board-{board.key}")


def _row(cells: Sequence[Cell], row: BoardRow, up: str) -> tuple[Cell, ...]:
    page = f"{up}entries/{row.entry.entry_id}.html"
    answers = answers_of(row.entry, row.brief.scores.label, up)
    figures = [cell if cell.is_empty else replace(cell, link=answers) for cell in cells[_NAMES:]]
    return (
        Cell("–" if row.group is None else str(row.group), faint=row.group is None),
        replace(cells[0], link=f"{up}memories/{unique_slug(row.brief.scores.backend)}.html"),
        Cell(row.brief.scores.backend_version or "n/a", faint=not row.brief.scores.backend_version),
        Cell(badge(row.entry), link=page),
        *figures,
        Cell(row.entry.device),
    )


def answers_of(entry: Entry, label: str, up: str) -> str:
    """Return the link to the answers behind a row: their traces in the site, or else how to list them."""
    if entry.questions:
        return f"{up}questions/{entry.entry_id}.html#{row_key(label)}"
    return f"{up}entries/{entry.entry_id}.html#{ANSWERS}"


def row_key(label: str) -> str:
    """Return the anchor of a row's answers on the page of its run's questions."""
    return f"row-{unique_slug(label)}"


def badge(entry: Entry) -> str:
    """Return whether a row has a verified bundle, and what that certifies; a profile for tests gives nothing."""
    if entry.certificate is None:
        return "no"
    return f"✓ {', '.join(entry.certificate.certifies)}" if entry.certificate.certifies else "verifies, for tests"


def lacking(row: BoardRow) -> tuple[str, ...]:
    """Return a line for each reason why a row is not certified; empty for a certified row."""
    entry, scores = row.entry, row.brief.scores
    if entry.certificate is not None:
        if entry.certificate.certifies:
            return ()
        return (f"profile {entry.certificate.profile} is for tests and certifies nothing",)
    counts = scores.counts
    lacking = ["no bundle, which memarena-spark run and certify make"]
    if scores.diagnostic:
        lacking.append("a diagnostic is never certified")
    if scores.own_model:
        lacking.append("calls its own models, so that its tokens are unknown")
    if counts.missing:
        lacking.append(f"{counts.missing:,} questions not asked")
    if counts.backend_failed or counts.unmeasured:
        lacking.append(f"{counts.backend_failed + counts.unmeasured:,} questions failed")
    return tuple(lacking)


def _breaks(rows: Sequence[BoardRow]) -> list[int]:
    """Return the indices of rows with a rule above them: the first of each group and of the unordered rows."""
    return [index for index in range(1, len(rows)) if rows[index].group != rows[index - 1].group]
