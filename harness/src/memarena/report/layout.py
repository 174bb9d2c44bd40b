"""Defines the data structure of a report, which renderers turn into text, Markdown, LaTeX or HTML: sections, tables.

Tables are built once (``tables/``), and each format is a renderer of this structure (``render/``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Align = Literal["left", "right"]
ChapterName = Literal["scores", "permission", "retrieval", "time", "breakdowns", "chance", "published", ""]
"""A chapter of the HTML report; empty: the last chapter, of all sections that belong to no other."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    ``strong``: the best of its column; ``faint``: n/a or unimportant; ``slanted``: predicted instead of measured.
    """

    text: str
    strong: bool = False
    faint: bool = False
    slanted: bool = False
    questions: int | None = None
    """Number of questions behind a share; None if that is unknown or the cell is not a share."""
    absent: bool = False
    """Whether the figure does not exist (n/a)."""
    spread: str = ""
    """End of ``text`` after the figure, such as its standard deviation: `` ±1.2``."""
    link: str = ""
    """Relative address of the details behind the figure, on pages that have such; else empty."""

    @property
    def figure(self) -> str:
        """``text`` without ``spread``."""
        return self.text[: len(self.text) - len(self.spread)]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self.absent or not self.text


@dataclass(frozen=True)
class Column:
    """A column; ``meaning`` explains it in one line, or is empty if the title suffices."""

    title: str
    meaning: str = ""
    align: Align = "right"


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    breaks: tuple[int, ...] = ()
    """Indices of rows with a rule above them, such as the first diagnostic or the first row of another run."""

    def without_empty_columns(self) -> tuple[Table, tuple[str, ...]]:
        """Return the table without the columns that are n/a in every row, and the titles of these."""
        columns = [
            i
            for i, column in enumerate(self.columns)
            if column.align == "left" or not all(row[i].is_empty for row in self.rows)
        ]
        left_out = tuple(c.title.strip("· ") for i, c in enumerate(self.columns) if i not in columns)
        rows = tuple(tuple(row[i] for i in columns) for row in self.rows)
        return Table(tuple(self.columns[i] for i in columns), rows, self.breaks), left_out


@dataclass(frozen=True)
class Fact:
    """A line with a name, such as ``state     completed``; the text wraps with a hanging indent."""

    name: str
    text: str
    width: int = 8
    """Width of the names of a section on a terminal, in characters."""

    def __str__(self) -> str:
        """Return the name, at least two spaces, and the text."""
        return f"{self.name:<{self.width}}  {self.text}"


@dataclass(frozen=True)
class Section:
    """A titled part of a report: lines, a table with its legend, notes."""

    title: str
    lines: tuple[str | Fact, ...] = ()
    table: Table | None = None
    notes: tuple[str, ...] = ()
    one_line_each: bool = False
    """Whether lines are truncated at the width of a terminal instead of wrapped."""
    trace: str = ""
    """Command that lists the answers behind the figures; empty if there is none."""
    trace_columns: tuple[tuple[str, str], ...] = ()
    """(title of a column, flags that narrow ``trace`` to the answers of the column)."""

    key: str = ""
    """Name by which ``--table`` selects it, such as ``main-grid``; derived from the title if it is not set."""
    group: str = ""
    """Name of its group of runs, such as ``run 2``, if a report has several groups; else empty."""
    chapter: ChapterName = ""
    """Chapter of the HTML report."""

    def __post_init__(self) -> None:
        if not self.key:
            object.__setattr__(self, "key", _slug(self.title))

    @property
    def anchor(self) -> str:
        """Name for links and labels, unique in a report: ``main-grid``, ``main-grid-run-2``."""
        return f"{self.key}-{_slug(self.group)}" if self.group else self.key

    @property
    def named_lines(self) -> tuple[tuple[str, str], ...]:
        """(name, text) of every line; the name is empty for a line without one."""
        return tuple((line.name, line.text) if isinstance(line, Fact) else ("", line) for line in self.lines)

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """(title, meaning) of every column that has a meaning."""
        columns = self.table.columns if self.table else ()
        return tuple((c.title, c.meaning) for c in columns if c.meaning)


def _slug(text: str) -> str:
    """Return the text in lower case, with hyphens for all that is not a letter or digit."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    sections: tuple[Section, ...]


def section(
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str] = (),
    *,
    breaks: Sequence[int] = (),
    trace: str = "",
    trace_columns: Sequence[tuple[str, str]] = (),
    key: str = "",
) -> Section:
    """Return a section of one table without the columns that are n/a in every row; a note names these."""
    full_table = Table(tuple(columns), tuple(tuple(row) for row in rows), tuple(breaks))
    table, left_out = full_table.without_empty_columns()
    hidden = (f"left out, n/a in every row: {', '.join(dict.fromkeys(left_out))}",) if left_out else ()
    titles = {column.title for column in table.columns}
    trace_filters = tuple((name, filters) for name, filters in trace_columns if trace and name in titles)
    return Section(title, (), table, (*notes, *hidden), trace=trace, trace_columns=trace_filters, key=key)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is 1."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
