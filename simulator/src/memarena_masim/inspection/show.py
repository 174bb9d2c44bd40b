"""Runs ``masim inspect``: prints the requested parts of a data set and writes drawings of the social graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from memarena_masim.errors import MasimError
from memarena_masim.inspection.data_set import Inspected, day_lines, fact_lines, graph_lines, overview_lines


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parts of a data set to show, from the flags."""

    graph: bool
    svg: Path | None
    html: Path | None
    agent: str | None
    day: int | None
    fact: str | None


def show(folder: Path, wanted: Wanted) -> None:
    """Print what ``wanted`` asks for, or an overview; write drawings. MasimError for faults that a user can fix."""
    data = Inspected.open(folder)
    if wanted.day is not None and wanted.agent is None:
        raise MasimError(f"--day {wanted.day}: give --agent too")
    lines = graph_lines(data) if wanted.graph else []
    drawn = _draw(data, folder, wanted)
    if wanted.agent is not None:
        lines += day_lines(data, wanted.agent, wanted.day or 0)
    if wanted.fact is not None:
        lines += fact_lines(data, wanted.fact)
    if not lines and not drawn:
        lines = overview_lines(data)
    for line in lines:
        typer.echo(line)


def _draw(data: Inspected, folder: Path, wanted: Wanted) -> bool:
    if wanted.svg is None and wanted.html is None:
        return False
    from memarena_masim.inspection.social_graph import html_of, svg_of  # noqa: PLC0415 (NumPy, only where something is drawn)

    title = f"Social graph of {folder.resolve().name}"
    if wanted.svg is not None:
        _write(wanted.svg, svg_of(data.graph, data.names, title), "--svg")
    if wanted.html is not None:
        _write(wanted.html, html_of(data.graph, data.names, title, graph_lines(data)), "--html")
    return True


def _write(path: Path, text: str, flag: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MasimError(f"{flag} {path}: {error.strerror}") from error
    typer.echo(str(path))
