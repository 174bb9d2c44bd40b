"""Builds the document of a reproduction: each table with the paper's figures, ours, and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from memarena.paper.published import load_published
from memarena.paper.published_types import Figure, PrintedRow, PrintedTable
from memarena.report.layout import Cell, Column, Document, Section, section
from memarena.report.paper.sections import differences
from memarena.reproduction.figures import Line, Measured, Value, place_of, value_of
from memarena.reproduction.gathering import Gathered
from memarena.reproduction.published import published_table
from memarena.reproduction.steps import Settings
from memarena.reproduction.tables import PaperTable
from memarena.scoring.results import RunScores

NA = Cell("n/a", faint=True, absent=True)
_MEAN = "mean"


def reproduction_document(tables: Sequence[PaperTable], gathered: Gathered, settings: Settings) -> Document:
    """Return the document: what was run, then a section for each table."""
    sections = [_head(gathered, settings)]
    sections += [_section(table, gathered.measured, settings) for table in tables if not table.people]
    if gathered.runs:
        sections.append(differences(gathered.runs))
    return Document("The paper's tables and ours", tuple(sections))


def _head(gathered: Gathered, settings: Settings) -> Section:
    runs: Sequence[RunScores] = gathered.runs
    datasets = dict.fromkeys(f"{settings.world.name}, sha256 {run.dataset.sha256[:12]}" for run in runs)
    judges = dict.fromkeys(run.judge for run in runs)
    lines = [
        f"readers: {', '.join(str(reader.name) for reader in settings.readers.readers)} ({settings.readers.where})",
        f"data set: {'; '.join(datasets) or 'none was asked about yet'}",
        f"judge: {', '.join(judges) or 'none yet'}",
    ]
    if settings.limit is not None:
        lines.append(f"a trial: at most {settings.limit} questions for a cell, so that no figure is one to cite")
    return Section("What was run", tuple(lines), notes=gathered.notes)


def _section(table: PaperTable, measured: Measured, settings: Settings) -> Section:
    """Return the section of a table: for each line the paper's figures, ours, and the difference."""
    printed = published_table(table.name)
    lines = _lines(table, printed, settings)
    others = [line for row, line in lines if not _is_mean(row)]
    body: list[list[Cell]] = []
    rules: list[int] = []
    for row, line in lines:
        if body:
            rules.append(len(body))
        ours = [_value(table, expression, line, measured, others) for expression in table.columns]
        body += _three(table, row, ours)
    columns = [
        *(Column(name, align="left") for name in printed.labels),
        Column("whose", align="left"),
        *(Column(name) for name in printed.columns),
    ]
    notes = [f"the paper's {table.name}", *([printed.note] if printed.note else []), *table.notes]
    names = [str(reader.name) for reader in settings.readers.readers]
    if table.reader is not None and table.reader not in names:
        notes.append(f"the paper's reader {table.reader} is not in {settings.readers.where}: ours is {names[0]}")
    return section(f"{table.name}: {table.title}", columns, body, notes, breaks=rules, key=table.name)


def _value(table: PaperTable, expression: str, line: Line, measured: Measured, others: Sequence[Line]) -> Value:
    """Return our figure; in a line of means, the mean over ``others``, None if one of them has no figure."""
    default = table.configurations[0] if table.configurations else ""
    if not _is_mean(line):
        value = value_of(measured, expression, line, default)
    else:
        values = [value_of(measured, expression, other, default) for other in others]
        present = [value for value in values if value is not None]
        value = fmean(present) if present and len(present) == len(values) else None
    return value / 100 if value is not None and table.shares and " - " not in expression else value


def _three(table: PaperTable, row: PrintedRow, ours: Sequence[Value]) -> list[list[Cell]]:
    """Return three rows for a line: the paper's figures, ours, and the difference."""
    digits = [_digits(table, expression) for expression in table.columns]
    labels = [Cell(label) for label in row.labels]
    paper = [_printed(figure, n) for figure, n in zip(row.figures, digits, strict=True)]
    our_cells = [NA if value is None else Cell(f"{value:,.{n}f}") for value, n in zip(ours, digits, strict=True)]
    gaps = [
        NA if value is None or figure is None else Cell(f"{value - figure.value:+,.{n}f}")
        for value, figure, n in zip(ours, row.figures, digits, strict=True)
    ]
    blank = [Cell("") for _ in labels]
    return [[*labels, Cell("paper"), *paper], [*blank, Cell("ours"), *our_cells], [*blank, Cell("Δ"), *gaps]]


def _digits(table: PaperTable, expression: str) -> int:
    return 3 if expression.endswith(":r2") or (table.shares and " - " not in expression) else 1


def _printed(figure: Figure | None, digits: int) -> Cell:
    if figure is None:
        return NA
    spread = f" ±{figure.sd:.{digits}f}" if figure.sd is not None else ""
    mark = "≈" if figure.predicted else ""
    return Cell(f"{mark}{figure.value:,.{digits}f}{spread}", slanted=figure.predicted, spread=spread)


# ------------------------------------------------------------------ lines


def _lines(table: PaperTable, printed: PrintedTable, settings: Settings) -> list[tuple[PrintedRow, Line]]:
    """Return the paper's lines of readers that take part, then lines for readers that are not in the paper."""
    names = tuple(str(reader.name) for reader in settings.readers.readers)
    published_readers = {cell.reader for cell in load_published().grid}
    reader_by_labels = {row.labels: _reader_of(row.labels, tuple(published_readers)) for row in printed.rows}
    lines: list[tuple[PrintedRow, Line]] = []
    for row in printed.rows:
        reader = reader_by_labels[row.labels]
        if reader is not None and reader not in names and not _pools(table):
            continue
        lines.append((row, _line(table, row.labels, reader, names)))
    by_reader = [row for row in printed.rows if reader_by_labels[row.labels] is not None]
    if by_reader and not _pools(table):
        patterns = dict.fromkeys(_without(row.labels, reader_by_labels[row.labels]) for row in by_reader)
        empty = (None,) * len(printed.columns)
        for name in (name for name in names if name not in published_readers):
            for pattern in patterns:
                labels = tuple(name if label is None else label for label in pattern)
                lines.append((PrintedRow(labels=labels, figures=empty), _line(table, labels, name, names)))
    return lines


def _is_mean(row: PrintedRow | Line) -> bool:
    return row.labels[0].lower().startswith(_MEAN)


def _line(table: PaperTable, labels: tuple[str, ...], reader: str | None, names: tuple[str, ...]) -> Line:
    if _pools(table):
        readers = names if reader is None else tuple(name for name in names if name == reader)
    elif reader is not None:
        readers = (reader,)
    elif table.reader is not None:
        readers = (table.reader if table.reader in names else names[0],)
    else:
        readers = ()
    cells = next((table.cells[label] for label in labels if label in table.cells), ())
    texts = (cells,) if isinstance(cells, str) else cells
    default = table.configurations[0] if table.configurations else ""
    return Line(labels, readers, tuple(place_of(text, default) for text in texts))


def _pools(table: PaperTable) -> bool:
    return any("pooled" in expression for expression in table.columns)


def _reader_of(labels: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    """Return the paper's reader that a label begins with: Qwen3-32B for `Qwen3-32B-AWQ`; None if there is none."""
    return next((name for label in labels for name in known if label.startswith(name)), None)


def _without(labels: tuple[str, ...], reader: str | None) -> tuple[str | None, ...]:
    """Return the labels with None in place of the label that names the reader."""
    return tuple(None if reader is not None and label.startswith(reader) else label for label in labels)
