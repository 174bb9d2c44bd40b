"""The commands ``masim pack``: parse options, call one function, print the result."""

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
