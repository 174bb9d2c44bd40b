"""Computes our figure for a column of a published table, from an expression ``CELL/FIGURE`` or a difference of several.

``tables.v1.toml`` holds the expressions. A cell is ``MEMORY`` or ``CONFIGURATION:MEMORY``; ``@`` is the cell that the
line's labels name, ``dataset`` the data set. A figure may have an argument: ``oracle/fam:d8_temporal``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memarena.latency.results import Study
from memarena.reproduction.score_figures import ScoredRow, extreme, of_row, paired, pooled
from memarena.reproduction.study_figures import OF_STUDY

Value = float | None


@dataclass(frozen=True)
class Measured:
    """All measurements: rows of scores by (configuration, reader, memory), and the latency study."""

    rows: Mapping[tuple[str, str, str], ScoredRow]
    study: Study | None = None
    decoding: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Tokens per second of the study's answers, by (reader, memory)."""
    dataset: Mapping[str, float] = field(default_factory=dict)
    """Size of the data set, by the paper's labels."""


@dataclass(frozen=True)
class Line:
    """A line of a table: its labels, its readers, and the cells that ``@`` in an expression refers to."""

    labels: tuple[str, ...]
    readers: tuple[str, ...]
    """A single reader, or several if the table pools over readers."""
    cells: tuple[tuple[str, str], ...] = ()
    """(configuration, memory) of each cell."""


def value_of(measured: Measured, expression: str, line: Line, default: str) -> Value:
    """Return our figure in percent, points, or the figure's own unit; None if a part of it was not measured.

    ``default`` is the configuration of cells that do not name one.
    """
    if not expression:
        return None
    values = [_term(measured, term, line, default) for term in expression.split(" - ")]
    known = [value for value in values if value is not None]
    return known[0] - sum(known[1:]) if len(known) == len(values) else None


def _term(measured: Measured, term: str, line: Line, default: str) -> Value:
    """Return the figure of one term, ``CELL/FIGURE``, of an expression; None if it was not measured."""
    cell, _, figure = term.partition("/")
    name, _, argument = figure.partition(":")
    if cell == "dataset":
        return measured.dataset.get(line.labels[0])
    cells = line.cells if cell == "@" else (place_of(cell, default),)
    if not cells or not line.readers:
        return None
    reader, (configuration, memory) = line.readers[0], cells[0]
    if name in OF_STUDY:
        return OF_STUDY[name](measured.study, reader, memory, argument)
    if name == "decode_tokens_per_s":
        return measured.decoding.get((reader, memory))
    rows = [row for c, m in cells for r in line.readers if (row := measured.rows.get((c, r, m))) is not None]
    if name == "paired" and (other := measured.rows.get((configuration, reader, "oracle"))) is not None:
        return paired(rows[0], other, line.labels[1], argument) if rows else None
    return _of_scores(rows, name, line.labels[0] if argument == "*" else argument)


def _of_scores(rows: Sequence[ScoredRow], name: str, argument: str) -> Value:
    if name == "pooled":
        return pooled([row.scores for row in rows], argument)
    if name in {"best", "worst"}:
        return extreme(rows, name)
    return of_row(rows[0].scores, name, argument) if rows else None


def place_of(cell: str, default: str) -> tuple[str, str]:
    """Return (configuration, memory) of a cell in an expression; ``default`` if it names no configuration."""
    configuration, colon, memory = cell.partition(":")
    return (configuration, memory) if colon else (default, cell)
