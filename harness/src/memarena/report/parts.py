"""Filters a report: selects tables by name, and hides shares over few questions.

A share of 3 questions looks like one of 300 in a table, so it is hidden unless ``--small`` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memarena_dataset.nearest_names import nearest

from memarena.report.layout import Cell, Document, Section, Table
from memarena.scoring.errors import ScoringError


def only_tables(document: Document, names: Sequence[str]) -> Document:
    """Return the document with only the named tables, in the order of the names; a key selects it in all groups.

    Raises ScoringError for a name that no table has; the message lists the names that exist.
    """
    known = [part.anchor for part in document.sections if part.table]
    parts: list[Section] = []
    for name in names:
        matches = [part for part in document.sections if part.table and name in (part.key, part.anchor)]
        if not matches:
            raise ScoringError(
                f"--table {name}: this report has no such table; there are: {', '.join(known)}{nearest(name, known)}"
            )
        parts += matches
    return Document(document.title, tuple(dict.fromkeys(parts)))


def without_small_cells(document: Document, least: int) -> Document:
    """Return the document without shares over fewer than ``least`` questions or tables of only such shares."""
    parts = [section_without_small(part, least) for part in document.sections]
    return Document(document.title, tuple(part for part in parts if part is not None))


def section_without_small(part: Section, least: int) -> Section | None:
    """Return the section without shares over fewer than ``least`` questions; None if it has no other figure."""
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
