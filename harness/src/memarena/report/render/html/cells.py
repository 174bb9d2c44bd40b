"""Converts tables for HTML templates: each cell with figure, spread and CSS classes separately."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from memarena.report.layout import Cell, Table

WIDE_FROM = 12
"""Columns from which a table is printed in smaller type."""


_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
"""A hyphen used as a minus sign."""


@dataclass(frozen=True)
class CellView:
    """A cell: figure, spread (±, in small type), and CSS classes."""

    text: str
    spread: str
    kind: str
    """CSS classes: ``n`` for a figure, ``best``, ``faint``, ``slanted``."""
    head: bool
    """Whether it is a header of the row."""
    link: str = ""
    """Address of the details behind the figure; empty if there are none."""


@dataclass(frozen=True)
class TableView:
    """A table: column titles, and rows in groups separated by a rule."""

    columns: tuple[tuple[str, bool], ...]
    """(title, whether the column has figures)."""
    bodies: tuple[tuple[tuple[CellView, ...], ...], ...]
    wide: bool
    """Whether it has so many columns that it is printed in smaller type."""


def table_view(table: Table) -> TableView:
    """Convert a table for the template."""
    figures = [column.align == "right" for column in table.columns]
    heads = figures.index(True) if True in figures else 1
    rows = [
        tuple(_cell(cell, figures[index], head=index < heads) for index, cell in enumerate(row)) for row in table.rows
    ]
    bodies = tuple(tuple(rows[a:b]) for a, b in pairwise([0, *table.breaks, len(rows)]) if b > a)
    columns = tuple((column.title.strip(), figures[index]) for index, column in enumerate(table.columns))
    return TableView(columns, bodies, len(columns) >= WIDE_FROM)


def _cell(cell: Cell, figure: bool, *, head: bool) -> CellView:
    kinds = [("n", figure), ("best", cell.strong), ("faint", cell.faint), ("slanted", cell.slanted)]
    return CellView(
        _MINUS.sub("−", cell.figure),
        _MINUS.sub("−", cell.spread.lstrip()),
        " ".join(kind for kind, on in kinds if on),
        head,
        cell.link,
    )
