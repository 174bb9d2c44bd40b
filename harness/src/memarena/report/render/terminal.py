"""A report on a terminal: tables in 120 columns, plain text elsewhere."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from memarena_dataset.printing import printable
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from memarena.report.layout import Cell, Document, Fact, Section, Table

WIDTH = 120
_BETWEEN = 2
"""Blanks between two columns."""
_LONGEST_WORD = 24
"""A longer one, such as a path, is broken where there is no room."""
_SHORT = 16
"""A text column that is no wider is not wrapped: a name keeps its mark."""


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
        hang = max(len(line.name), line.width) + 2 if isinstance(line, Fact) else None
        _print_line(console, f"  {line}", hang, one_line=part.one_line_each)
    if part.table is not None:
        for number, piece in enumerate(_rich_tables(part.table, console.width)):
            if number:
                console.print()
            console.print(piece)
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


def _print_line(
    console: Console, line: str, hang: int | None = None, *, one_line: bool = False, style: str = ""
) -> None:
    """A line wrapped under its own text, or cut at the edge of a terminal and left whole in a file.

    ``hang``: characters before the text of the line, the section's indent apart; None for a line without a name.
    """
    line = printable(line)
    if one_line:
        if console.is_terminal:
            console.print(Text(line), no_wrap=True, overflow="ellipsis")
        else:
            console.print(Text(line), soft_wrap=True)
        return
    indent = len(line) - len(line.lstrip()) if hang is None else hang
    wrapped = textwrap.wrap(line, console.width, subsequent_indent=" " * (indent + 2), break_on_hyphens=False) or [""]
    for piece in wrapped:
        console.print(Text(piece, style=style))


def _rich_tables(table: Table, width: int) -> Iterator[RichTable]:
    """The table in so many columns: cut between columns if need be, never within a figure or a word.

    Each piece repeats the columns that name its rows, those before the first figure.
    """
    natural = [max(_length(text) for text in texts) for texts in _texts(table)]
    named = next((i for i, column in enumerate(table.columns) if column.align == "right"), len(table.columns))
    widths = _narrowed(table, natural, width) if _whole(natural) > width else natural
    if _whole(widths) <= width or named == len(table.columns):
        yield _rich_table(table, list(range(len(table.columns))), widths)
        return
    widths = _narrowed(table, natural, width, least_for_others=max(natural[named:]) + _BETWEEN)
    names = list(range(named))
    piece: list[int] = []
    for place in range(named, len(table.columns)):
        if piece and _whole([widths[i] for i in [*names, *piece, place]]) > width:
            yield _rich_table(table, [*names, *piece], widths)
            piece = []
        piece.append(place)
    yield _rich_table(table, [*names, *piece], widths)


def _rich_table(table: Table, places: Sequence[int], widths: Sequence[int]) -> RichTable:
    rich = RichTable(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for place in places:
        column = table.columns[place]
        rich.add_column(
            Text(column.title.strip()),
            justify=column.align,
            overflow="fold",
            no_wrap=column.align == "right",
            width=widths[place],
        )
    for number, row in enumerate(table.rows):
        if number in table.breaks:
            rich.add_section()
        rich.add_row(*(_text(row[place]) for place in places))
    return rich


def _texts(table: Table) -> Iterator[list[str]]:
    """Title and cells of each column as they are printed."""
    for place, column in enumerate(table.columns):
        yield [column.title.strip(), *(_text(row[place]).plain for row in table.rows)]


def _length(text: str) -> int:
    return max((cell_len(line) for line in text.splitlines()), default=0)


def _whole(widths: Sequence[int]) -> int:
    """Of a table with columns so wide."""
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _narrowed(table: Table, natural: Sequence[int], width: int, least_for_others: int | None = None) -> list[int]:
    """Widths with text columns wrapped between words, the widest first, as far as that is needed for ``width``.

    ``least_for_others``: only the columns that name the rows must fit, beside so much for the rest.
    """
    widths = list(natural)
    text = [place for place, column in enumerate(table.columns) if column.align == "left"]
    counted = text if least_for_others is not None else range(len(widths))
    room = width - (least_for_others or 0)
    words = [(word for each in texts for word in each.split()) for texts in _texts(table)]
    least = {
        place: min(max(map(cell_len, words[place]), default=1), _LONGEST_WORD)
        if natural[place] > _SHORT
        else natural[place]
        for place in text
    }
    while _whole([widths[place] for place in counted]) > room:
        wide = [place for place in text if widths[place] > least[place]]
        if not wide:
            break
        widths[max(wide, key=lambda place: widths[place])] -= 1
    return widths


def _text(cell: Cell) -> Text:
    text = printable(cell.text)
    if cell.strong:
        return Text(f"{text} *", style="bold green")
    return Text(text, style="dim" if cell.faint else "italic" if cell.slanted else "")
