"""Parses flags whose text is not simply a value of the field's type: lists, entries of maps, files of ids.

Each constant is a :class:`~memarena.execution.planning.settings.Form`: the type in which the command line takes the
flag, and a function from (flag, field, value) to fields of RunConfig by name. ``config`` and ``model_config`` attach
them to fields; ``map_form`` and ``map_of_maps_form`` make further forms.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memarena.execution.errors import RunError
from memarena.execution.planning.settings import Form


def split_list(text: str) -> list[str]:
    """Return the entries of a list that is separated by commas, without blank ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _as_list(flag: str, field: str, text: str) -> dict[str, object]:
    """Parse ``a,b`` into a list."""
    return {field: split_list(text)}


def _as_absolute_path(flag: str, field: str, path: Path) -> dict[str, object]:
    """Return the path as an absolute one, so that it stays valid if the working directory changes."""
    return {field: path.absolute()}


def _as_day_numbers(flag: str, field: str, text: str) -> dict[str, object]:
    """Parse ``1,5,10`` into sorted, distinct day numbers of at least 1."""
    days = split_list(text)
    if not days or not all(day.isdecimal() and int(day) >= 1 for day in days):
        raise RunError(f"--{flag} {text}: expected numbers from 1 on, separated by commas, such as 1,5,10,15")
    return {field: tuple(sorted({int(day) for day in days}))}


def _as_ids_of_file(flag: str, field: str, path: Path) -> dict[str, object]:
    """Read instance ids from a file, one per line; empty lines and lines that begin with # are skipped."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"--{flag} {path}: cannot be read: {error}") from error
    ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not ids:
        raise RunError(f"--{flag} {path}: names no instance; expected one id per line")
    return {field: ids}


def _as_thinking(flag: str, field: str, text: str) -> dict[str, object]:
    """Parse ``on``, ``off``, ``default``, or a budget of tokens, which means on and sets ``reasoning_tokens`` too."""
    return {field: "on", "reasoning_tokens": int(text)} if text.isdecimal() else {field: text}


def _as_prompt_styles(flag: str, field: str, styles: list[str]) -> dict[str, object]:
    """Parse ``STYLE``, which is for all backends, and ``BACKEND=STYLE``, which is for one."""
    of_backends: dict[str, str] = {}
    values: dict[str, object] = {}
    for text in styles:
        backend, equals, style = text.rpartition("=")
        if equals:
            of_backends[backend] = style
        else:
            values[field] = style
    return {**values, "prompt_styles": of_backends} if of_backends else values


WORDS = Form(str, _as_list)
"""A list in one text, separated by commas: ``--seeds s1,s2``."""
REPEATABLE = Form(list[str], lambda flag, field, values: {field: values})
"""A list of which each entry is a flag: ``--ego a --ego b``."""
ABSOLUTE_PATH = Form(Path, _as_absolute_path)
DAY_NUMBERS = Form(str, _as_day_numbers)
IDS_OF_FILE = Form(Path, _as_ids_of_file)
THINKING = Form(str, _as_thinking)
PROMPT_STYLES = Form(list[str], _as_prompt_styles)


def map_of_maps_form(expected: str, keys: tuple[str, ...] = ()) -> Form:
    """Return the parser of ``NAME.KEY=VALUE`` into a map of maps: ``{name: {key: value}}``.

    Only ``keys`` are allowed, if there are any. ``expected`` is the form of the text, as messages name it.
    """

    def to_fields(flag: str, field: str, texts: list[str]) -> dict[str, object]:
        values: dict[str, dict[str, str]] = {}
        for pair in texts:
            path, equals, value = pair.partition("=")
            # A backend's name may hold dots, a key does not.
            name, dot, key = path.rpartition(".")
            if not (equals and dot and name and key) or (keys and key not in keys):
                raise RunError(f"--{flag} {pair}: expected {expected}")
            values.setdefault(name, {})[key] = value
        return {field: values}

    return Form(list[str], to_fields)


def map_form(expected: str, parse: Callable[[str], Any] = str) -> Form:
    """Return the parser of ``KEY=VALUE`` into a map.

    ``parse`` raises ValueError for an invalid value. ``expected`` is the form of the text, as messages name it.
    """

    def to_fields(flag: str, field: str, texts: list[str]) -> dict[str, object]:
        values: dict[str, object] = {}
        for pair in texts:
            key, equals, text = pair.partition("=")
            if not (equals and key):
                raise RunError(f"--{flag} {pair}: expected {expected}")
            try:
                values[key] = parse(text)
            except (ValueError, RecursionError):
                raise RunError(f"--{flag} {pair}: expected {expected}") from None
        return {field: values}

    return Form(list[str], to_fields)


def strict_json(text: str) -> Any:
    """Parse JSON. Raises ValueError if it is not valid, also for NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)
