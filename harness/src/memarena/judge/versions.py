"""What decides a verdict, as hashes: the data files and the code that reads them."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from memarena import text

_JUDGE_CODE = ("addressing.py", "ruling.py", "token_f1.py", "value.py")
"""Beside every module whose name begins with ``value_``."""
_FOLDERS = ("prompts", "tables")
_VALUE_TABLES = ("judge/addressing.v2.toml", "judge/standing.v1.toml", "judge/token_f1.v1.toml")
"""Tables that the value judge reads; the others belong to judges with a model and to calibration."""


def data_files() -> dict[str, str]:
    """SHA-256 of every versioned file that can decide a verdict, by name."""
    own = {
        f"judge/{entry.name}": hashlib.sha256(entry.read_bytes()).hexdigest()
        for folder in _FOLDERS
        for entry in sorted((files("memarena.judge") / folder).iterdir(), key=lambda e: e.name)
        if entry.name.endswith(".toml")
    }
    return {**own, **text.data_files()}


@cache
def value_judge_version() -> str:
    """SHA-256 over the value judge's code, vocabulary and thresholds: whatever can change a verdict changes it."""
    parts = [
        f"{name} {digest}"
        for name, digest in sorted(data_files().items())
        if name in _VALUE_TABLES or name.startswith("text/")
    ]
    judge, words = files("memarena.judge"), files("memarena.text")
    sources = [
        (f"judge/{entry.name}", entry)
        for entry in sorted(judge.iterdir(), key=lambda e: e.name)
        if entry.name in _JUDGE_CODE or (entry.name.startswith("value_") and entry.name.endswith(".py"))
    ]
    sources += [
        (f"text/{entry.name}", entry)
        for entry in sorted(words.iterdir(), key=lambda e: e.name)
        if entry.name.endswith(".py")
    ]
    parts += [f"{name} {hashlib.sha256(entry.read_bytes()).hexdigest()}" for name, entry in sources]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
