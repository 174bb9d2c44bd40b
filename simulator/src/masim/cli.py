"""The command ``masim``: parse, call one function, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from masim_bars.command import bars as measure_bars
from masim_bars.errors import BarsError

from masim.config import preset, sized
from masim.display import EngineDisplay
from masim.engines.endpoint import EndpointConfig
from masim.engines.llm import LlmEngine
from masim.engines.model import Engine
from masim.engines.offline import OfflineEngine
from masim.engines.options import EngineFlags
from masim.errors import MasimError
from masim.inspect import Inspected, day_lines, fact_lines, graph_lines, overview_lines
from masim.output.generate import generate as make
from masim.output.parts import is_left
from masim.output.worlds import counts_of_complete, shortage, summary, world_folder
from masim.social import html_of, svg_of

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
    engine: Annotated[str, typer.Option(help="What words the plan: offline (phrase banks), or llm.")] = "offline",
    endpoint: Annotated[
        str | None, typer.Option(help="llm: URL of an OpenAI-compatible API, http://host:port/v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="llm: name of the model there.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="llm: environment variable that holds the key, if one is needed.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="llm: requests in flight at a time (8).")] = None,
    temperature: Annotated[float | None, typer.Option(help="llm: sampling temperature (0.8).")] = None,
    timeout_s: Annotated[float | None, typer.Option(help="llm: seconds that a reply may take (180).")] = None,
    quiet: Annotated[bool, typer.Option(help="Say nothing while working.")] = False,
) -> None:
    """Make one or more data sets. A killed generation goes on with the same command."""
    connection = EngineFlags(engine, endpoint, model, api_key_env, concurrency, temperature, timeout_s).connection()
    for flag, number in (("worlds", worlds), ("workers", workers)):
        if number is not None and number < 1:
            raise MasimError(f"--{flag} {number}: 1 or more is expected")
    for world in range(worlds):
        config = sized(preset(preset_name, seed, world), agents=agents, days=days, density=density, banks=banks)
        folder = world_folder(out, world, worlds)
        with _engine(connection, workers or os.cpu_count() or 1, quiet) as (writer, say), _writing(folder):
            skip = worlds > 1 and not is_left(folder)
            counts = counts_of_complete(config, writer.identity, folder) if skip else None
            if counts is None:
                counts = make(config, folder, engine=writer, progress=say)
        typer.echo(f"{folder}: {summary(counts)}")
        short = shortage(config, counts)
        if short:
            _say(f"{folder}: fewer questions than aimed at: {short}")


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """What cannot be written is said of the flag. Finished days are kept where there are any."""
    try:
        yield
    except OSError as error:
        raise MasimError(f"--out {error.filename or folder}: {error.strerror or error}") from error


@contextmanager
def _engine(
    connection: EndpointConfig | None, workers: int, quiet: bool
) -> Iterator[tuple[Engine, Callable[[str], None]]]:
    """The engine, and what to do with a line of progress."""
    if connection is None:
        yield OfflineEngine(workers), (lambda _: None) if quiet else _say
        return
    with (
        EngineDisplay(quiet=quiet) as display,
        LlmEngine(connection, progress=display.status) as engine,
    ):
        yield engine, display.day


@app.command()
def inspect(
    folder: Annotated[Path, typer.Argument(help="Folder of a data set.")],
    graph: Annotated[bool, typer.Option("--graph", help="The social graph, layer by layer.")] = False,
    svg: Annotated[Path | None, typer.Option(help="File to draw the social graph in.")] = None,
    html: Annotated[Path | None, typer.Option(help="File for a page with the drawing and the graph in words.")] = None,
    agent: Annotated[str | None, typer.Option(help="Agent id; shows a day of theirs.")] = None,
    day: Annotated[int | None, typer.Option(help="Day index for --agent (0).")] = None,
    fact: Annotated[str | None, typer.Option(help="Fact id; shows who told it to whom, and who was asked.")] = None,
) -> None:
    """Show what is in a data set."""
    data = Inspected.open(folder)
    if day is not None and agent is None:
        raise MasimError(f"--day {day}: give --agent too")
    title = f"Social graph of {folder.resolve().name}"
    lines = graph_lines(data) if graph else []
    if svg is not None:
        _write(svg, svg_of(data.graph, data.names, title), "--svg")
    if html is not None:
        _write(html, html_of(data.graph, data.names, title, graph_lines(data)), "--html")
    if agent is not None:
        lines += day_lines(data, agent, day or 0)
    if fact is not None:
        lines += fact_lines(data, fact)
    if not lines and svg is None and html is None:
        lines = overview_lines(data)
    for line in lines:
        typer.echo(line)


def _write(path: Path, text: str, flag: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MasimError(f"{flag} {path}: {error.strerror}") from error
    typer.echo(str(path))


@app.command()
def bars(
    folders: Annotated[
        list[Path], typer.Argument(help="Data sets that nothing was tuned on, or folders that hold several.")
    ],
    train: Annotated[
        list[Path] | None, typer.Option(help="Other worlds, that classifiers, patterns and guessers learn from.")
    ] = None,
    locomo: Annotated[
        Path | None, typer.Option(help="LoCoMo conversations, measured beside; ../shared is looked in without it.")
    ] = None,
    llm: Annotated[bool, typer.Option("--llm", help="Also what takes the embedded model; minutes.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the table with all its parts.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a bar is missed.")] = False,
) -> None:
    """Measure every bar that worlds have to meet, from their files alone."""
    lines, met = measure_bars(folders, train or [], locomo=locomo, llm=llm, json_file=json_file, say=_say)
    typer.echo("\n".join(lines))
    if strict and not met:
        raise typer.Exit(1)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def main() -> None:
    """Entry point: bad input is one line and exit code 2."""
    try:
        app(standalone_mode=True)
    except (MasimError, BarsError) as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"error: {where}{error.strerror or error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
