"""Refuses repeated options that take a single value, of which the parser would silently use the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup


def refuse_repeated(command: Any, arguments: Sequence[str]) -> None:
    """Raise :class:`typer.BadParameter` if an option that takes a single value is used more than once.

    ``command`` may be a group: then ``arguments`` begin with the name of a command of the group.
    """
    remaining = list(arguments)
    while remaining and (inner := getattr(command, "commands", {}).get(remaining[0])) is not None:
        command, remaining = inner, remaining[1:]
    values_of_option = {
        name: (option.opts[0], option.nargs)
        for option in command.params
        if not (getattr(option, "multiple", False) or getattr(option, "is_flag", False))
        for name in option.opts
        if name.startswith("--")
    }
    used: set[str] = set()
    index = 0
    while index < len(remaining) and remaining[index] != "--":
        name, joined, _ = remaining[index].partition("=")
        index += 1
        if name not in values_of_option:
            continue
        option, values = values_of_option[name]
        if option in used:
            raise typer.BadParameter(f"{option}: given more than once, but it takes one value")
        used.add(option)
        if not joined:
            index += values  # the next arguments are its values, even if they look like options


class OnceGroup(TyperGroup):
    """A group of commands that refuse a repeated option with a single value: ``typer.Typer(cls=OnceGroup)``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return name and command of the first argument, and the other arguments, after :func:`refuse_repeated`."""
        name, command, remaining = super().resolve_command(ctx, args)
        refuse_repeated(command, remaining)
        return name, command, remaining
