"""The command ``masim``: parse, call one function, print."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from masim.config import preset, sized
from masim.errors import MasimError
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
    worlds: Annotated[int, typer.Option(help="Independent worlds, each its own data set.")] = 1,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores if not given.")] = None,
    quiet: Annotated[bool, typer.Option(help="Say nothing while working.")] = False,
) -> None:
    """Make one or more data sets."""
    count = workers or os.cpu_count() or 1
    for world in range(worlds):
        config = sized(preset(preset_name, seed, world), agents=agents, days=days, density=density)
        folder = out / f"world_{world:02d}" if worlds > 1 else out
        counts = make(config, folder, workers=count, progress=(lambda _: None) if quiet else _say)
        typer.echo(f"{folder}: {sum(counts.values())} questions")


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
