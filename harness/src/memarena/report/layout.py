"""The form of a report before it becomes terminal text, Markdown or a page: sections of lines and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Align = Literal["left", "right"]
ChapterName = Literal["scores", "permission", "retrieval", "time", "breakdowns", "chance", "published", ""]
"""A chapter of the HTML report; empty: the last, of whatever belongs to no other."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    ``strong`` is the best of its column, ``faint`` is n/a or unimportant, ``slanted`` is predicted, not measured.
    """

    text: str
    strong: bool = False
    faint: bool = False
    slanted: bool = False
    questions: int | None = None
    """How many questions a share is over; None where that is not known or the cell is no share."""
    absent: bool = False
    """Whether there is no such figure."""
    spread: str = ""
    """What follows the figure at the end of ``text``, its standard deviation for example: `` ±1.2``."""
    link: str = ""
    """Relative address of what is behind the figure, on pages that have one."""

    @property
    def figure(self) -> str:
        """The text without the spread."""
        return self.text[: len(self.text) - len(self.spread)]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self.absent or not self.text


@dataclass(frozen=True)
class Column:
    """A column with what it means in one line; an empty ``meaning`` explains itself."""

    title: str
    meaning: str = ""
    align: Align = "right"


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    breaks: tuple[int, ...] = ()
    """Rows, from 0, with a rule above: diagnostics, another run."""

    def without_empty_columns(self) -> tuple[Table, tuple[str, ...]]:
        """The table without columns that are n/a in every row, and the titles left out."""
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
    """A line with a name, such as ``state     completed``; its text is wrapped under itself."""

    name: str
    text: str
    width: int = 8
    """Characters that the names of a section take on a terminal."""

    def __str__(self) -> str:
        """The name, two blanks at least, the text."""
        return f"{self.name:<{self.width}}  {self.text}"


@dataclass(frozen=True)
class Section:
    """A titled part: lines, a table, the table's legend, notes."""

    title: str
    lines: tuple[str | Fact, ...] = ()
    table: Table | None = None
    notes: tuple[str, ...] = ()
    one_line_each: bool = False
    """Lines are cut at a terminal's edge instead of wrapped."""
    trace: str = ""
    """The command that lists the answers behind the figures."""
    trace_columns: tuple[tuple[str, str], ...] = ()
    """Columns, each with what to add to that command for the answers that the column counts."""

    key: str = ""
    """What it is selected by, for example ``main-grid``; made of the title where nothing selects it."""
    group: str = ""
    """Which runs it is over, where a report has several groups: ``run 2``."""
    chapter: ChapterName = ""

    def __post_init__(self) -> None:
        if not self.key:
            object.__setattr__(self, "key", _slug(self.title))

    @property
    def anchor(self) -> str:
        """A name for links and labels that no other section of a report has: ``main-grid``, ``main-grid-run-2``."""
        return f"{self.key}-{_slug(self.group)}" if self.group else self.key

    @property
    def named_lines(self) -> tuple[tuple[str, str], ...]:
        """Name and text of every line; the name is empty where a line has none."""
        return tuple((line.name, line.text) if isinstance(line, Fact) else ("", line) for line in self.lines)

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """Title and meaning of every column that needs one."""
        columns = self.table.columns if self.table else ()
        return tuple((c.title, c.meaning) for c in columns if c.meaning)


def _slug(text: str) -> str:
    """Lower case, hyphens."""
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
    """A section of one table, without columns that are n/a everywhere."""
    whole = Table(tuple(columns), tuple(tuple(row) for row in rows), tuple(breaks))
    table, left_out = whole.without_empty_columns()
    hidden = (f"left out, n/a in every row: {', '.join(dict.fromkeys(left_out))}",) if left_out else ()
    titles = {column.title for column in table.columns}
    trace_filters = tuple((name, filters) for name, filters in trace_columns if trace and name in titles)
    return Section(title, (), table, (*notes, *hidden), trace=trace, trace_columns=trace_filters, key=key)


def counted(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
