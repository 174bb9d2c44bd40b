"""Reads JSON of published data sets for importers, with a limit of nesting and errors that name the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import ijson

from memarena_dataset.errors import DatasetError

MAX_NESTING = 100
"""Levels of lists and objects within each other; published files have fewer than ten."""


def read_json(path: Path) -> tuple[Any, bytes]:
    """Return the value of a JSON file, and its bytes.

    Raises:
        DatasetError: it is missing, unreadable or not JSON.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    return parse_json(data, str(path)), data


def parse_json(data: bytes, where: str) -> Any:
    """Parse bytes as JSON. Errors name the source as ``where``.

    Raises:
        DatasetError: they are not JSON, hold an integer of more than 4,300 digits, or are nested too deeply.
    """
    try:
        value = json.loads(data)
    except ValueError as error:  # also for bytes that are not UTF-8, and for integers of more digits than Python parses
        raise DatasetError(f"{where}: not JSON: {error}") from error
    except RecursionError as error:
        raise _too_deep(where) from error
    level = [value]
    for _ in range(MAX_NESTING):
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [child for children in inner for child in children]
        if not level:
            return value
    raise _too_deep(where)


def json_events(stream: _Readable, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the events of a JSON file that does not fit in memory, for ``ijson.parse``, which does not limit nesting.

    Raises:
        DatasetError: it is not JSON, holds an integer that does not fit in 64 bits, or is nested too deeply.
    """
    depth = 0
    try:
        for event, value in ijson.basic_parse(stream, use_float=True):
            depth += _STEPS.get(event, 0)
            if depth > MAX_NESTING:
                raise _too_deep(where)
            yield event, value
    except (ijson.JSONError, ValueError) as error:
        raise DatasetError(f"{where}: not JSON: {' '.join(str(error).split())}") from error


_STEPS = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def _too_deep(where: str) -> DatasetError:
    return DatasetError(f"{where}: JSON nested too deeply: at most {MAX_NESTING} levels are expected")
