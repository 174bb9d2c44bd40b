"""An option that takes one value and is given twice: the parser would keep the last one and say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer


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
    seen: set[str] = set()
    at = 0
    while at < len(rest) and rest[at] != "--":
        name, joined, _ = rest[at].partition("=")
        at += 1
        if name not in single:
            continue
        option, values = single[name]
        if option in seen:
            raise typer.BadParameter(f"{option}: given more than once, but it takes one value")
        seen.add(option)
        if not joined:
            at += values  # what follows is its value, whatever it looks like
