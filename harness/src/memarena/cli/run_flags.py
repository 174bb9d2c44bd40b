"""Declares the flags of ``memarena run``: folders and connections, and the settings of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from memarena.cli.completion import configurations
from memarena.cli.setting_flags import FlagValues, SettingsOf
from memarena.execution.planning.config import SETTINGS
from memarena.execution.planning.settings import Panel


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """The flags of ``memarena run``. ``settings`` and ``edge`` override the fields of a configuration."""

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="A named configuration (see --list), or a file of one: TOML or YAML.",
            autocompletion=configurations,
        ),
    ] = None
    list_all: Annotated[bool, typer.Option("--list", help="List the named configurations and exit.")] = False
    out: Annotated[
        Path | None, typer.Option(help="New folder of the run: its log, the backends' data, their output. Required.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out; it keeps its settings.")] = (
        False
    )
    tls_ca: Annotated[
        Path | None, typer.Option(help="PEM file: connect to backends by TLS with these root certificates.")
    ] = None
    bearer_token_file: Annotated[Path | None, typer.Option(help="File with a bearer token for backends.")] = None
    settings: Annotated[FlagValues, SettingsOf("run", panels=True)] = field(default_factory=dict)
    edge: Annotated[
        bool,
        typer.Option(
            "--edge",
            help="Edge budget: 512 context tokens, 64 answer tokens.",
            rich_help_panel=Panel.READERS.value,
        ),
    ] = False

    def deciding(self) -> list[str]:
        """Return the used flags that override a configuration, as a user writes them."""
        flags = [flag for flag in SETTINGS if flag.commands and flag.parameter in self.settings]
        used = [f"--{'no-' if self.settings[flag.parameter] is False else ''}{flag.flag}" for flag in flags]
        return [*used, "--edge"] if self.edge else used
