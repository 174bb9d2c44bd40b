"""Options that take one value, once: of two values the parser would keep the last one and say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup


def refuse_repeated(command: Any, arguments: Sequence[str]) -> None:
    """Raises :class:`typer.BadParameter` where an option that takes one value is among ``arguments`` more than once.

    ``command`` may be a group: then the arguments are those of the command of it that they name.
    """
    rest = list(arguments)
    while rest and (inner := getattr(command, "commands", {}).get(rest[0])) is not None:
        command, rest = inner, rest[1:]
    single = {
        name: (option.opts[0], option.nargs)
        for option in command.params
        if not (getattr(option, "multiple", False) or getattr(option, "is_flag", False))
        for name in option.opts
        if name.startswith("--")
    }
    used: set[str] = set()
    at = 0
    while at < len(rest) and rest[at] != "--":
        name, joined, _ = rest[at].partition("=")
        at += 1
        if name not in single:
            continue
        option, values = single[name]
        if option in used:
            raise typer.BadParameter(f"{option}: given more than once, but it takes one value")
        used.add(option)
        if not joined:
            at += values  # what follows is its value, whatever it looks like


class OnceGroup(TyperGroup):
    """A group none of whose commands takes an option with one value twice: ``typer.Typer(cls=OnceGroup)``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command of the first argument, its options looked at."""
        name, command, rest = super().resolve_command(ctx, args)
        refuse_repeated(command, rest)
        return name, command, rest
