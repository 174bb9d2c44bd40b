"""Implements the command ``masim``: parses options, calls one function, prints the result.

Each command imports what it needs when it runs, so that the others start fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.programs import run_guarded
from memarena_dataset.single_use_options import OnceGroup
from memarena_dataset.version_option import version_printer

from memarena_masim.pack_cli import app as pack_app

app = typer.Typer(
    cls=OnceGroup,
    help="MaSim, the simulator of MemArena: generates conversation data sets whose ground truth is exact.",
)
app.add_typer(pack_app, name="pack")


def _presets() -> list[str]:
    """Return the names of the presets, for completion in shells."""
    from memarena_masim.config import preset_names  # noqa: PLC0415

    return preset_names()


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=version_printer("masim", "memarena-masim"), is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """MaSim, the simulator of MemArena: generates conversation data sets whose ground truth is exact."""


@app.command()
def generate(
    out: Annotated[
        Path, typer.Option(help="Folder to write the data set to; with --worlds above 1, one sub-folder per world.")
    ],
    seed: Annotated[
        int, typer.Option(help="Random seed. The same seed and options give the same files, byte for byte.")
    ] = 42,
    preset_name: Annotated[
        str,
        typer.Option(
            "--preset",
            autocompletion=_presets,
            help="Size of the world: tiny (6 people, 3 days), s (10, 5), m (25, 10), l (50, 15) or year (50, 365).",
        ),
    ] = "tiny",
    agents: Annotated[int | None, typer.Option(help="Number of people (overrides the preset).")] = None,
    days: Annotated[int | None, typer.Option(help="Number of days (overrides the preset).")] = None,
    density: Annotated[
        float | None,
        typer.Option(help="Sessions per person and day, relative to the released data set (overrides the preset)."),
    ] = None,
    pack: Annotated[
        Path | None, typer.Option(help="Folder of the pack that the words come from. Default: the public pack.")
    ] = None,
    banks: Annotated[str | None, typer.Option(help="Which half of the pack to use: all, tuning or held-out.")] = None,
    wording: Annotated[
        str | None,
        typer.Option(
            help="Percent of the questions that call a thing by its own name, by another name that people use, and by "
            "a description. Default: 70/20/10."
        ),
    ] = None,
    worlds: Annotated[int, typer.Option(help="How many independent worlds to generate.")] = 1,
    workers: Annotated[
        int | None, typer.Option(help="Worker processes. Default: all cores, fewer for a small world.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="What writes the text: offline (phrase banks) or llm (a language model).")
    ] = "offline",
    endpoint: Annotated[
        str | None, typer.Option(help="llm: base URL of an OpenAI-compatible API, for example http://host:port/v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="llm: name of the model to use there.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="llm: environment variable that holds the API key.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="llm: most requests in flight at a time. Default: 8.")] = None,
    temperature: Annotated[float | None, typer.Option(help="llm: sampling temperature. Default: 0.8.")] = None,
    timeout_s: Annotated[
        float | None, typer.Option(help="llm: timeout of one request in seconds. Default: 180.")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Where worlds are made: local, or ray, a world a task of a cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="ray: HOST:PORT of the cluster's head, or auto. Default: a Ray of its own on this machine."),
    ] = None,
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
) -> None:
    """Generate one or more data sets. After an interruption the same command continues where it stopped.

    A data set is the life of a small world: people who talk with each other
    and with their assistants for some days, and questions about it, each
    with the one right answer and the turns that it follows from.

    Examples:
      masim generate --out worlds/first --preset tiny
      masim generate --out worlds/train --preset s --worlds 4 --seed 100
    """
    from memarena_masim.engines.options import EngineFlags  # noqa: PLC0415
    from memarena_masim.generation import Where, WorldFlags, generate_worlds  # noqa: PLC0415

    connection = EngineFlags(engine, endpoint, model, api_key_env, concurrency, temperature, timeout_s).connection()
    flags = WorldFlags(seed, preset_name, agents, days, density, banks, wording, pack)
    where = Where(executor, address)
    generate_worlds(out, flags, connection, worlds=worlds, workers=workers, quiet=quiet, where=where)


@app.command()
def inspect(
    folder: Annotated[Path, typer.Argument(help="Folder of a data set.")],
    graph: Annotated[bool, typer.Option("--graph", help="Print the social graph, layer by layer.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Write a drawing of the social graph to this file.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write an HTML page with the drawing and the graph as text to this file.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Agent id: print one day of this person.")] = None,
    day: Annotated[int | None, typer.Option(help="Day to print with --agent, from 0. Default: 0.")] = None,
    fact: Annotated[
        str | None, typer.Option(help="Fact id: print who told it to whom, and the questions about it.")
    ] = None,
) -> None:
    """Print what is in a data set: counts, the social graph, a person's day, or the history of one fact."""
    from memarena_masim.inspection.show import Wanted, show  # noqa: PLC0415

    show(folder, Wanted(graph, svg, html, agent, day, fact))


@app.command()
def bars(
    folders: Annotated[list[Path], typer.Argument(help="Data sets to measure, or folders that hold several.")],
    train: Annotated[
        list[Path] | None,
        typer.Option(help="Other data sets, to train the classifiers on. Must not be among the measured ones."),
    ] = None,
    locomo: Annotated[
        Path | None,
        typer.Option(help="LoCoMo file to measure beside. Default: looked for in MEMARENA_SHARED or ../shared."),
    ] = None,
    llm: Annotated[
        bool, typer.Option("--llm", help="Also measure what needs the embedded language model (minutes).")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the table with all details to this file.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict/--lenient", help="Exit with code 1 if a quality bar is missed, or with 0.")
    ] = True,
) -> None:
    """Measure the quality of data sets, from their files alone, and compare it with the quality bars."""
    from memarena_dataset_quality.command import bars as measure_bars  # noqa: PLC0415

    lines, met = measure_bars(folders, train or [], locomo=locomo, llm=llm, json_file=json_file, say=_say)
    typer.echo("\n".join(lines))
    if strict and not met:
        raise typer.Exit(1)


@app.command(name="reading-sheet")
def reading_sheet(
    folder: Annotated[Path, typer.Argument(help="Data set to read.")],
    out: Annotated[Path, typer.Option(help="New folder for what readers get: sheet.md, and marks.csv to fill in.")],
    key: Annotated[Path, typer.Option(help="New file for the sources, outside of that folder. Not for readers.")],
    sessions: Annotated[int, typer.Option(min=1, help="Sessions of each source.")] = 20,
    seed: Annotated[int, typer.Option(help="Random seed of the choice, the order and the names.")] = 1,
    locomo: Annotated[
        Path | None,
        typer.Option(help="LoCoMo file to read beside. Default: looked for in MEMARENA_SHARED or ../shared."),
    ] = None,
) -> None:
    """Write sessions of a data set and of LoCoMo, shuffled and renamed, for a blind reading."""
    from memarena_dataset_quality.command import reading_sheet as write  # noqa: PLC0415

    write(folder, locomo=locomo, out=out, key=key, sessions=sessions, seed=seed)


@app.command(name="reading-marks")
def reading_marks(
    marks: Annotated[list[Path], typer.Argument(help="Filled-in marks.csv of two readers or more.")],
    key: Annotated[Path, typer.Option(help="The key that reading-sheet wrote.")],
) -> None:
    """Print what readers made of a blind reading; exit with code 1 if a bar is missed."""
    from memarena_dataset_quality.blind_reading.marks import report  # noqa: PLC0415

    lines, met = report(key, marks)
    typer.echo("\n".join(lines))
    if not met:
        raise typer.Exit(1)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def main() -> None:
    """Entry point: bad input is one line and exit code 2; Ctrl-C is exit code 130."""
    run_guarded(app)


if __name__ == "__main__":
    main()
