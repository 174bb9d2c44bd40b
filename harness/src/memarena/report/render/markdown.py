"""Writes a report as Markdown: sections as headings, tables as pipe tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena.report.layout import Cell, Document, Section, Table


def to_markdown(document: Document) -> str:
    """Return the document as Markdown with pipe tables and a final newline; legends are lists."""
    lines = [f"# {document.title}", ""]
    for part in document.sections:
        lines += [*_section(part), ""]
    return "\n".join(lines).rstrip() + "\n"


def _section(part: Section) -> Iterator[str]:
    yield f"## {part.title}"
    yield ""
    if part.lines:
        yield "```text"
        yield from map(str, part.lines)
        yield "```"
        yield ""
    if part.table is not None:
        yield from _table(part.table)
        yield ""
    for note in part.notes:
        yield f"- {_escaped(note)}"
    for title, meaning in part.legend:
        yield f"- **{_escaped(title.strip())}**: {_escaped(meaning)}"
    if part.trace:
        yield f"- list these answers: `{part.trace}`"
    if part.trace_columns:
        filters_by_column = "; ".join(f"{_escaped(name)} `{filters}`" for name, filters in part.trace_columns)
        yield f"- for the answers of one column, add: {filters_by_column}"


def _table(table: Table) -> Iterator[str]:
    yield _row([_escaped(column.title.strip()) for column in table.columns])
    yield _row(["---" if column.align == "left" else "---:" for column in table.columns])
    for row in table.rows:
        yield _row([_cell(cell) for cell in row])


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    if cell.slanted:
        return f"*{text}*"
    return f"**{text}**" if cell.strong else text


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").split())
