"""Parses a run's configuration from plain values; names the first fault by the user's flag or key."""

from __future__ import annotations

from pydantic import ValidationError

from memarena.execution.errors import RunError
from memarena.execution.planning.config import SETTINGS, RunConfig
from memarena.execution.reasons import reason_of

_BY_PATH = {(each.role, each.name): each for each in SETTINGS}
"""Settings by role and name: ``("readers", "window_tokens")``, or ``("", "seeds")`` for a setting of the run itself."""


def parse_config(content: object, where: str | None) -> RunConfig:
    """Return the configuration of plain values, which are from the file ``where`` or, if that is None, from flags
    alone.

    Raises:
        RunError: the first field at fault, by ``where`` and its name or by its flag.
    """
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        reason = reason_of(first)
        if not first["loc"]:  # of several fields together: the reason names them, and what was given is all of them
            raise RunError(f"{where}: {reason}" if where else reason) from error
        if where is None:
            name = _flag_of([part for part in first["loc"] if isinstance(part, str)])
        else:
            name = f"{where}: {'.'.join(map(str, first['loc']))}"
        # Settings may hold a secret: what was given is not repeated.
        hidden = first["type"] in {"missing", "too_short"} or first["loc"][:1] == ("settings",)
        actual = "" if hidden else f", got {str(first['input'])[:80]!r}"
        raise RunError(f"{name}: {reason}{actual}") from error


def _flag_of(path: list[str]) -> str:
    """Return the flag that sets a field, and the part of it at fault: ``--reader-window``, ``--deadline search``."""
    setting = _BY_PATH.get((path[0], path[1])) if len(path) > 1 else None
    flag, inside = (setting.flag, path[2:]) if setting else (_BY_PATH["", path[0]].flag, path[1:])
    return " ".join((f"--{flag}", *inside))
