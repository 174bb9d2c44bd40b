"""Parts of a report: chosen tables, and tables without shares of a few questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memarena_dataset.nearest_names import nearest

from memarena.report.layout import Cell, Document, Section, Table
from memarena.scoring.errors import ScoringError


def only_tables(document: Document, names: Sequence[str]) -> Document:
    """The sections of these names, as they were given; of several groups of runs all.

    Raises ScoringError for a name that no table has, with those that there are.
    """
    known = [part.anchor for part in document.sections if part.table]
    parts: list[Section] = []
    for name in names:
        own = [part for part in document.sections if part.table and name in (part.key, part.anchor)]
        if not own:
            raise ScoringError(
                f"--table {name}: this report has no such table; there are: {', '.join(known)}{nearest(name, known)}"
            )
        parts += own
    return Document(document.title, tuple(dict.fromkeys(parts)))


def without_small_cells(document: Document, least: int) -> Document:
    """The document with shares of fewer than ``least`` questions left out; a table of nothing else is left out too."""
    parts = [section_without_small(part, least) for part in document.sections]
    return Document(document.title, tuple(part for part in parts if part is not None))


def section_without_small(part: Section, least: int) -> Section | None:
    """The same for one section; None where nothing would be left of it."""
    if part.table is None or not any(_small(cell, least) for row in part.table.rows for cell in row):
        return part
    too_few = Cell(f"n<{least}", faint=True)
    rows = tuple(tuple(too_few if _small(cell, least) else cell for cell in row) for row in part.table.rows)
    figures = [index for index, column in enumerate(part.table.columns) if column.align == "right"]
    if all(row[index] == too_few or row[index].is_empty for row in rows for index in figures):
        return None
    note = f"{too_few.text}: fewer than {least} questions; `memarena report RUN --small` gives these shares too"
    return replace(part, table=Table(part.table.columns, rows, part.table.breaks), notes=(*part.notes, note))


def _small(cell: Cell, least: int) -> bool:
    return cell.questions is not None and 0 < cell.questions < least
