"""Implements the option ``--version`` of a program, from the metadata of its distribution."""

from __future__ import annotations

from collections.abc import Callable

import typer


def version_printer(program: str, distribution: str) -> Callable[[bool], None]:
    """Return the option's callback, which prints the program's name and version, and ends it."""

    def print_version(requested: bool) -> None:
        if requested:
            from importlib.metadata import version  # noqa: PLC0415 (only where asked for)

            typer.echo(f"{program} {version(distribution)}")
            raise typer.Exit

    return print_version
