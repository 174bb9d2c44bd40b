"""The command ``masim``: parse, call one function, print."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from masim.bars.table import as_lines, measure
from masim.config import preset, sized
from masim.errors import MasimError
from masim.inspect import day_lines, fact_lines, graph_lines, overview_lines
from masim.output.generate import generate as make

app = typer.Typer(help="Makes worlds whose ground truth is exact.", no_args_is_help=True, add_completion=False)


@app.callback()
def root() -> None:
    """Makes worlds whose ground truth is exact."""


@app.command()
def generate(
    out: Annotated[Path, typer.Option(help="Folder of the data set; with several worlds, of their folders.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 42,
    preset_name: Annotated[str, typer.Option("--preset", help="tiny, s, m or l.")] = "tiny",
    agents: Annotated[int | None, typer.Option(help="People, instead of the preset's.")] = None,
    days: Annotated[int | None, typer.Option(help="Days, instead of the preset's.")] = None,
    density: Annotated[
        float | None, typer.Option(help="Sessions per agent and day; 1 is the released density.")
    ] = None,
    banks: Annotated[
        str | None, typer.Option(help="Phrase banks: all, or the half that is tuned on, or the half held out.")
    ] = None,
    worlds: Annotated[int, typer.Option(help="Independent worlds, each its own data set.")] = 1,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores if not given.")] = None,
    quiet: Annotated[bool, typer.Option(help="Say nothing while working.")] = False,
) -> None:
    """Make one or more data sets."""
    count = workers or os.cpu_count() or 1
    for world in range(worlds):
        config = sized(preset(preset_name, seed, world), agents=agents, days=days, density=density, banks=banks)
        folder = out / f"world_{world:02d}" if worlds > 1 else out
        counts = make(config, folder, workers=count, progress=(lambda _: None) if quiet else _say)
        typer.echo(f"{folder}: {sum(counts.values())} questions")


@app.command()
def inspect(
    folder: Annotated[Path, typer.Argument(help="Folder of a data set.")],
    graph: Annotated[bool, typer.Option("--graph", help="Everybody's closest people.")] = False,
    agent: Annotated[str | None, typer.Option(help="Agent id; shows a day of theirs.")] = None,
    day: Annotated[int, typer.Option(help="Day index for --agent.")] = 0,
    fact: Annotated[str | None, typer.Option(help="Fact id; shows who told it to whom, and who was asked.")] = None,
) -> None:
    """Show what is in a data set."""
    if not (folder / "pipeline_report.json").exists():
        raise MasimError(f"{folder}: pipeline_report.json is missing; the folder of a data set is expected")
    lines = overview_lines(folder)
    if graph:
        lines = graph_lines(folder)
    if agent is not None:
        lines = day_lines(folder, agent, day)
    if fact is not None:
        lines = fact_lines(folder, fact)
    typer.echo("\n".join(lines))


@app.command()
def bars(
    folders: Annotated[list[Path], typer.Argument(help="Folders of data sets that nothing was tuned on.")],
    train: Annotated[
        list[Path] | None, typer.Option(help="Worlds that the classifier of asked facts learns from.")
    ] = None,
    locomo: Annotated[Path | None, typer.Option(help="File of LoCoMo conversations, measured beside.")] = None,
) -> None:
    """Measure the bars that a world has to meet."""
    typer.echo("\n".join(as_lines(measure(folders, train or [], locomo))))


def _say(line: str) -> None:
    typer.echo(line, err=True)


def main() -> None:
    """Entry point: bad input is one line and exit code 2."""
    try:
        app(standalone_mode=True)
    except MasimError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
