"""The command ``masim``: parse, call one function, print.

A command imports what it needs when it runs: no other has to wait for that.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from masim_bars.errors import BarsError
from memarena.once import OnceGroup
from typer.exceptions import TyperException

from masim.errors import MasimError

app = typer.Typer(cls=OnceGroup, help="Makes worlds whose ground truth is exact.", add_completion=False)


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
    workers: Annotated[
        int | None, typer.Option(help="Processes; all cores if not given, fewer for a small world.")
    ] = None,
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
    from masim.engines.options import EngineFlags  # noqa: PLC0415
    from masim.generating import WorldFlags, generate_worlds  # noqa: PLC0415

    connection = EngineFlags(engine, endpoint, model, api_key_env, concurrency, temperature, timeout_s).connection()
    flags = WorldFlags(seed, preset_name, agents, days, density, banks)
    generate_worlds(out, flags, connection, worlds=worlds, workers=workers, quiet=quiet)


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
    from masim.showing import Wanted, show  # noqa: PLC0415

    show(folder, Wanted(graph, svg, html, agent, day, fact))


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
    from masim_bars.command import bars as measure_bars  # noqa: PLC0415

    lines, met = measure_bars(folders, train or [], locomo=locomo, llm=llm, json_file=json_file, say=_say)
    typer.echo("\n".join(lines))
    if strict and not met:
        raise typer.Exit(1)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def main() -> None:
    """Entry point: bad input is one line and exit code 2; Ctrl-C is exit code 130."""
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        _fail(f"{error.format_message()} (--help says what there is)")
    except (MasimError, BarsError) as error:
        _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> NoReturn:
    sys.stderr.write("error: " + " ".join(message.split()) + "\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
