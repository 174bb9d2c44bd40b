"""Commands imported when they run: whoever asks for one, or for the version, does not wait for all the others."""

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
    """A command by its place, ``module:attribute`` of a function or a typer application, and its line in ``--help``."""

    place: str
    help: str

    def load(self, name: str) -> Any:
        """Import the module and make the command as typer makes those that are registered with it."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(module), attribute)
        holder = typer.Typer(add_completion=False)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=name, help=self.help)
        else:
            holder.command(name)(found)
        return get_group(holder).commands[name]


class LazyGroup(TyperGroup):
    """A group of ``entries``. Its help shows their lines; a command that is resolved is imported."""

    entries: ClassVar[dict[str, LazyCommand]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in self.entries.items():
            self.add_command(TyperCommand(name, help=entry.help))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command of the first argument, imported now. No option that takes one value may be given twice."""
        name, command, rest = super().resolve_command(ctx, args)
        entry = self.entries.get(name or "")
        loaded = command if entry is None else entry.load(name or "")
        refuse_repeated(loaded, rest)
        return name, loaded, rest
