"""What the text of a flag means, for settings whose flag is not simply a value: lists, entries of maps, files of ids.

Each is a :class:`~memarena.execution.planning.settings.Form`, or makes one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memarena.execution.errors import RunError
from memarena.execution.planning.settings import Form


def words(text: str) -> list[str]:
    """The entries of a list that is separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _as_words(flag: str, field: str, text: str) -> dict[str, object]:
    """``a,b``: a list."""
    return {field: words(text)}


def _as_absolute_path(flag: str, field: str, path: Path) -> dict[str, object]:
    """A path that stays the same one when the working directory changes."""
    return {field: path.absolute()}


def _as_day_numbers(flag: str, field: str, text: str) -> dict[str, object]:
    """``1,5,10``: numbers of at least 1, in order."""
    days = words(text)
    if not days or not all(day.isdecimal() and int(day) >= 1 for day in days):
        raise RunError(f"--{flag} {text}: expected numbers from 1 on, separated by commas, such as 1,5,10,15")
    return {field: tuple(sorted({int(day) for day in days}))}


def _as_ids_of_file(flag: str, field: str, path: Path) -> dict[str, object]:
    """Instance ids of a file, one per line; empty lines and lines that begin with # are passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"--{flag} {path}: cannot be read: {error}") from error
    ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not ids:
        raise RunError(f"--{flag} {path}: names no instance; expected one id per line")
    return {field: ids}


def _as_thinking(flag: str, field: str, text: str) -> dict[str, object]:
    """``on``, ``off``, ``default``, or a budget of tokens, which means on."""
    return {field: "on", "reasoning_tokens": int(text)} if text.isdecimal() else {field: text}


def _as_prompt_styles(flag: str, field: str, styles: list[str]) -> dict[str, object]:
    """``STYLE`` for all backends, ``BACKEND=STYLE`` for one."""
    of_backends: dict[str, str] = {}
    values: dict[str, object] = {}
    for text in styles:
        backend, equals, style = text.rpartition("=")
        if equals:
            of_backends[backend] = style
        else:
            values[field] = style
    return {**values, "prompt_styles": of_backends} if of_backends else values


WORDS = Form(str, _as_words)
REPEATABLE = Form(list[str], lambda flag, field, values: {field: values})
ABSOLUTE_PATH = Form(Path, _as_absolute_path)
DAY_NUMBERS = Form(str, _as_day_numbers)
IDS_OF_FILE = Form(Path, _as_ids_of_file)
THINKING = Form(str, _as_thinking)
PROMPT_STYLES = Form(list[str], _as_prompt_styles)


def entries(form: str, keys: tuple[str, ...] = ()) -> Form:
    """``NAME.KEY=VALUE``: a map of maps. Only ``keys`` where there are any; ``form`` is what messages expect."""

    def to_fields(flag: str, field: str, pairs: list[str]) -> dict[str, object]:
        values: dict[str, dict[str, str]] = {}
        for pair in pairs:
            path, equals, value = pair.partition("=")
            # A backend's name may hold dots, a key does not.
            name, dot, key = path.rpartition(".")
            if not (equals and dot and name and key) or (keys and key not in keys):
                raise RunError(f"--{flag} {pair}: expected {form}")
            values.setdefault(name, {})[key] = value
        return {field: values}

    return Form(list[str], to_fields)


def pairs(form: str, read: Callable[[str], Any] = str) -> Form:
    """``KEY=VALUE``: a map. ``read`` makes the value of its text and raises ValueError for what is none."""

    def to_fields(flag: str, field: str, texts: list[str]) -> dict[str, object]:
        values: dict[str, object] = {}
        for pair in texts:
            key, equals, text = pair.partition("=")
            try:
                value = read(text)
            except (ValueError, RecursionError):
                equals = ""
            if not (equals and key):
                raise RunError(f"--{flag} {pair}: expected {form}")
            values[key] = value
        return {field: values}

    return Form(list[str], to_fields)


def strict_json(text: str) -> Any:
    """A value in JSON. Raises ValueError, also for NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)
