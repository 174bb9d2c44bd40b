"""Writes canonical JSON and atomic files, and hashes bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from memarena.log.base import Record
from memarena_dataset import safe_files
from pydantic import JsonValue


def canonical_json(value: Record | JsonValue) -> bytes:
    """Return a value as canonical JSON: keys sorted, indented by two blanks, UTF-8, a newline at the end."""
    content = value.model_dump(mode="json", by_alias=True) if isinstance(value, Record) else value
    return (json.dumps(content, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically and durably (also in a power cut); its folder is created if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    safe_files.write_whole(path, content, durable=True)
