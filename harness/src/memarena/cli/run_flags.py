"""The flags of ``memarena run``: those that say where it goes, and the settings that decide what it does."""

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
    """Flags as they were typed. ``settings`` and ``edge`` decide what a run does, and override a configuration."""

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
        """Flags that were used and that decide what the run does, as a user writes them."""
        flags = [each for each in SETTINGS if each.commands and each.parameter in self.settings]
        used = [f"--{'no-' if self.settings[each.parameter] is False else ''}{each.flag}" for each in flags]
        return [*used, "--edge"] if self.edge else used
