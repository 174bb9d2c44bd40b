"""Reads and writes JSON files of a data set: the same bytes on every machine, errors with file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memarena_masim.errors import MasimError


def dump(row: object) -> str:
    """Return a value as one line of JSON, the same on every machine."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def json_rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, plain or gzip. MasimError names a missing file, or a line that is not a JSON object."""
    path = folder / name
    packed = folder / f"{name}.gz"
    if not path.exists() and not packed.exists():
        raise MasimError(f"{path}: missing; MaSim writes it into every data set")
    try:
        with path.open(encoding="utf-8") if path.exists() else gzip.open(packed, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield _object(line, f"{path}:{number}")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise MasimError(f"{path if path.exists() else packed}: cannot be read: {error}") from error


def json_value(folder: Path, name: str) -> dict[str, Any]:
    """Return the object in a file of one JSON value."""
    path = folder / name
    try:
        return _object(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise MasimError(f"{path}: cannot be read: {error}") from error


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MasimError(f"{where}: no JSON: {error}") from error
    if not isinstance(value, dict):
        raise MasimError(f"{where}: a JSON object is expected")
    return value
