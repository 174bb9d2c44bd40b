"""Writes plain values as TOML, for the files of sweeps and studies; the standard library only reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(values: Mapping[str, object]) -> str:
    """Return a line for each key, with tables and lists inline; keys with the value None are omitted."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in values.items() if value is not None)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items() if item is not None)
        return f"{{{inner}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)
