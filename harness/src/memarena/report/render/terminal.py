"""Prints a report: in the width and colours of a terminal, elsewhere as plain text of 120 columns."""

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
"""Columns of plain text, where the output is no terminal."""
_BETWEEN = 2
"""Spaces between two columns."""
_LONGEST_WORD = 24
"""Characters of a word that are kept together; a longer word, such as a path, may be broken."""
_SHORT = 16
"""Width up to which a text column is not wrapped, so that a name keeps its mark."""


def print_document(document: Document, file: IO[str] | None = None, width: int | None = None) -> None:
    """Print the document. Colours only on a terminal; elsewhere ``width`` or 120 columns of plain text."""
    console = Console(file=file, highlight=False, emoji=False, markup=False, soft_wrap=False)
    if not console.is_terminal:
        console = _plain(file, width or WIDTH)
    for part in document.sections:
        _print_section(console, part)


def print_fitting(candidates: Iterable[Document], lines: int, file: IO[str] | None = None) -> None:
    """Print the first document that fits into ``lines`` lines, else the last one."""
    width = Console(file=file).width if Console(file=file).is_terminal else WIDTH
    document = None
    for document in candidates:
        if count_lines(document, width) <= lines:
            break
    if document is not None:
        print_document(document, file)


def count_lines(document: Document, width: int = WIDTH) -> int:
    """Return the number of lines of a document at this width, with the blank line at its end."""
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
        filters_by_column = "; ".join(f"{name}: {filters}" for name, filters in part.trace_columns)
        _print_line(console, f"  for the answers of one column, add: {filters_by_column}", style="dim")
    console.print()


def _print_line(
    console: Console, line: str, hang: int | None = None, *, one_line: bool = False, style: str = ""
) -> None:
    """Print a line wrapped with a hanging indent; with ``one_line`` truncated on a terminal, in full elsewhere.

    ``hang``: characters before the text of the line, without the section's indent; None for a line without a name.
    """
    line = printable(line)
    if one_line:
        if console.is_terminal:
            console.print(Text(line), no_wrap=True, overflow="ellipsis")
        else:
            console.print(Text(line), soft_wrap=True)
        return
    indent = len(line) - len(line.lstrip()) if hang is None else hang
    pieces = textwrap.wrap(line, console.width, subsequent_indent=" " * (indent + 2), break_on_hyphens=False) or [""]
    for piece in pieces:
        console.print(Text(piece, style=style))


def _rich_tables(table: Table, width: int) -> Iterator[RichTable]:
    """Yield the table in pieces of at most ``width``, split between columns; figures and words are not broken.

    Each piece repeats the columns that name the rows, which are those before the first figure.
    """
    natural = [max(_length(text) for text in texts) for texts in _texts(table)]
    first_figure = next((i for i, column in enumerate(table.columns) if column.align == "right"), len(table.columns))
    widths = _narrowed(table, natural, width) if _total_width(natural) > width else natural
    if _total_width(widths) <= width or first_figure == len(table.columns):
        yield _rich_table(table, list(range(len(table.columns))), widths)
        return
    widths = _narrowed(table, natural, width, least_for_others=max(natural[first_figure:]) + _BETWEEN)
    names = list(range(first_figure))
    piece: list[int] = []
    for index in range(first_figure, len(table.columns)):
        if piece and _total_width([widths[i] for i in [*names, *piece, index]]) > width:
            yield _rich_table(table, [*names, *piece], widths)
            piece = []
        piece.append(index)
    yield _rich_table(table, [*names, *piece], widths)


def _rich_table(table: Table, columns: Sequence[int], widths: Sequence[int]) -> RichTable:
    rich = RichTable(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for index in columns:
        shown_column = table.columns[index]
        rich.add_column(
            Text(shown_column.title.strip()),
            justify=shown_column.align,
            overflow="fold",
            no_wrap=shown_column.align == "right",
            width=widths[index],
        )
    for number, row in enumerate(table.rows):
        if number in table.breaks:
            rich.add_section()
        rich.add_row(*(_text(row[index]) for index in columns))
    return rich


def _texts(table: Table) -> Iterator[list[str]]:
    """Yield for each column its title and cells as they are printed."""
    for index, column in enumerate(table.columns):
        yield [column.title.strip(), *(_text(row[index]).plain for row in table.rows)]


def _length(text: str) -> int:
    return max((cell_len(line) for line in text.splitlines()), default=0)


def _total_width(widths: Sequence[int]) -> int:
    """Return the width of a table from the widths of its columns."""
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _narrowed(table: Table, natural: Sequence[int], width: int, least_for_others: int | None = None) -> list[int]:
    """Return widths of columns that fit into ``width``: text columns are narrowed, the widest first, to their words.

    ``least_for_others``: only the text columns must fit, with this width left over for the others.
    """
    widths = list(natural)
    text = [index for index, column in enumerate(table.columns) if column.align == "left"]
    limited = text if least_for_others is not None else range(len(widths))
    room = width - (least_for_others or 0)
    words = [(word for cell_text in texts for word in cell_text.split()) for texts in _texts(table)]
    minimum = {
        index: min(max(map(cell_len, words[index]), default=1), _LONGEST_WORD)
        if natural[index] > _SHORT
        else natural[index]
        for index in text
    }
    while _total_width([widths[index] for index in limited]) > room:
        shrinkable = [index for index in text if widths[index] > minimum[index]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=lambda index: widths[index])] -= 1
    return widths


def _text(cell: Cell) -> Text:
    text = printable(cell.text)
    if cell.strong:
        return Text(f"{text} *", style="bold green")
    return Text(text, style="dim" if cell.faint else "italic" if cell.slanted else "")
