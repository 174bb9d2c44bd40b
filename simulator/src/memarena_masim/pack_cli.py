"""Implements the commands ``masim pack``: they parse options, call one function, and print the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.single_use_options import OnceGroup

app = typer.Typer(cls=OnceGroup, help="Packs: the folders that the words of worlds come from.")
PackFolder = Annotated[Path | None, typer.Argument(help="Folder of a pack. Default: the public pack.")]


@app.command()
def check(
    folder: PackFolder = None,
    against: Annotated[
        list[Path] | None, typer.Option(help="Other packs: print how much of this one is in them too.")
    ] = None,
) -> None:
    """Check a pack: form, frames, names that keep the gold safe; exit 1 if there is a fault.

    Lines that begin with "to read" are for a person: a name that has more
    words than its thing may say more than the thing, or not.

    Examples:
      masim pack check
      masim pack check harbour --against simulator/src/memarena_masim/banks
    """
    from memarena_masim.packs.commands import check as checked  # noqa: PLC0415

    lines, met = checked(folder, against or [])
    typer.echo("\n".join(lines))
    if not met:
        raise typer.Exit(1)


@app.command(name="hash")
def hash_command(
    folder: PackFolder = None,
    write: Annotated[bool, typer.Option("--write", help="Also put it into the manifest.")] = False,
) -> None:
    """Print the hash of a pack: SHA-256 over its files."""
    from memarena_masim.packs.commands import hash_of  # noqa: PLC0415

    typer.echo(hash_of(folder, write=write))


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(help="New folder; its name is the pack's name.")],
    source: Annotated[Path | None, typer.Option("--from", help="Pack to begin from. Default: the public pack.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed: which half of the source is kept.")] = 1,
    llm: Annotated[
        str | None, typer.Option(help="Base URL of an OpenAI-compatible API whose model proposes the other half.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model there.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the API key.")] = None,
    timeout_s: Annotated[float | None, typer.Option(help="Timeout of one request in seconds. Default: 180.")] = None,
    part: Annotated[
        list[str] | None, typer.Option(help="Only ask the model for these: things, frames, people, scenes.")
    ] = None,
) -> None:
    """Draft a pack: half of another one, and what a model proposes and checks accept.

    WRITE.md in the folder lists what a person has to write, REFUSED.md what
    was refused and why.

    Examples:
      masim pack new harbour --seed 7
      masim pack new harbour --llm http://127.0.0.1:8080/v1 --model NAME --part things
    """
    from memarena_masim.packs.commands import new as drafted  # noqa: PLC0415

    typer.echo(drafted(folder, source, seed, (llm, model, api_key_env, timeout_s), part))
