"""A report on a terminal: tables in 120 columns, plain text elsewhere."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from memarena.report.layout import Cell, Document, Section, Table

WIDTH = 120
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters, which an answer may contain and a terminal would execute."""
_NAMED = re.compile(r"\s*\S+(?: \S+){0,3} {2,}(?=\S)")
"""A name and the blanks behind it: where the text of the line begins."""


def print_document(document: Document, file: IO[str] | None = None, width: int | None = None) -> None:
    """Print the document. Colours only on a terminal; elsewhere ``width`` or 120 columns of plain text."""
    console = Console(file=file, highlight=False, emoji=False, markup=False, soft_wrap=False)
    if not console.is_terminal:
        console = _plain(file, width or WIDTH)
    for part in document.sections:
        _print_section(console, part)


def print_fitting(candidates: Iterable[Document], lines: int, file: IO[str] | None = None) -> None:
    """Print the first document that takes no more than ``lines`` here, else the last."""
    width = Console(file=file).width if Console(file=file).is_terminal else WIDTH
    chosen = None
    for chosen in candidates:
        if count_lines(chosen, width) <= lines:
            break
    if chosen is not None:
        print_document(chosen, file)


def count_lines(document: Document, width: int = WIDTH) -> int:
    """Lines that the document takes in so many columns, with the blank one at its end."""
    text = io.StringIO()
    print_document(document, text, width)
    return len(text.getvalue().splitlines())


def _plain(file: IO[str] | None, width: int) -> Console:
    return Console(
        file=file, width=width, highlight=False, emoji=False, markup=False, color_system=None, legacy_windows=False
    )


def _print_section(console: Console, part: Section) -> None:
    console.print(Text(part.title, style="bold"))
    for line in part.lines:
        _print_line(console, f"  {line}", one_line=part.one_line_each)
    if part.table is not None:
        console.print(_rich_table(part.table))
    for note in part.notes:
        _print_line(console, f"  {note}", style="yellow" if part.table is None else "dim")
    if part.legend:
        width = max(len(title.strip()) for title, _ in part.legend)
        for title, meaning in part.legend:
            console.print(Text(f"  {title.strip():<{width}}  {meaning}", style="dim"))
    if part.trace:
        console.print(Text(f"  list these answers: {part.trace}", style="dim"), soft_wrap=True)
    if part.trace_columns:
        added = "; ".join(f"{name}: {filters}" for name, filters in part.trace_columns)
        _print_line(console, f"  for the answers of one column, add: {added}", style="dim")
    console.print()


def _print_line(console: Console, line: str, *, one_line: bool = False, style: str = "") -> None:
    """A line wrapped under its own text, or cut at the edge of a terminal and left whole in a file."""
    line = _UNPRINTABLE.sub("�", line)
    if one_line:
        if console.is_terminal:
            console.print(Text(line), no_wrap=True, overflow="ellipsis")
        else:
            console.print(Text(line), soft_wrap=True)
        return
    named = _NAMED.match(line)
    hang = named.end() if named else len(line) - len(line.lstrip()) + 2
    wrapped = textwrap.wrap(line, console.width, subsequent_indent=" " * hang, break_on_hyphens=False) or [""]
    for piece in wrapped:
        console.print(Text(piece, style=style))


def _rich_table(table: Table) -> RichTable:
    rich = RichTable(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for column in table.columns:
        rich.add_column(
            Text(column.title.strip()), justify=column.align, overflow="fold", no_wrap=column.align == "right"
        )
    for place, row in enumerate(table.rows):
        if place in table.breaks:
            rich.add_section()
        rich.add_row(*(_text(cell) for cell in row))
    return rich


def _text(cell: Cell) -> Text:
    text = _UNPRINTABLE.sub("�", cell.text)
    if cell.strong:
        return Text(f"{text} *", style="bold green")
    return Text(text, style="dim" if cell.faint else "italic" if cell.slanted else "")
