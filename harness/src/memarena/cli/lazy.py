"""Imports the module of a command only when the command runs, so that ``memarena`` starts fast."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from memarena_dataset.single_use_options import refuse_repeated
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


@dataclass(frozen=True)
class LazyCommand:
    """A command; ``target``: ``module:attribute`` of a function or typer application, ``help``: line in ``--help``."""

    target: str
    help: str

    def load(self, name: str) -> Any:
        """Import the module and create the command as typer does for registered ones."""
        module, _, attribute = self.target.partition(":")
        loaded = getattr(import_module(module), attribute)
        holder = typer.Typer(add_completion=False)
        if isinstance(loaded, typer.Typer):
            holder.add_typer(loaded, name=name, help=self.help)
        else:
            holder.command(name)(loaded)
        return get_group(holder).commands[name]


class LazyGroup(TyperGroup):
    """A group of ``entries``: its help needs no imports, and a command is imported when it is resolved."""

    entries: ClassVar[dict[str, LazyCommand]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in self.entries.items():
            self.add_command(TyperCommand(name, help=entry.help))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import and return the command of the first argument; refuse an option with one value that is given twice."""
        name, command, remaining = super().resolve_command(ctx, args)
        entry = self.entries.get(name or "")
        loaded = command if entry is None else entry.load(name or "")
        refuse_repeated(loaded, remaining)
        return name, loaded, remaining
