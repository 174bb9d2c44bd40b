"""Hashes everything that decides a verdict: a version number of the rules, and their data files and models.

The log keeps the hash with each verdict. Verdicts by other versions of the rules do not count and are made again,
unless such a version is chosen by its hash (``judgments.py``).
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from memarena_dataset.values import word_lists

JUDGE_VERSION = 10
"""Raised by hand whenever the code gives another verdict on any answer."""

_FOLDERS = ("models", "prompts", "refusals", "tables")
_VALUE_FILES = ("judging/tables/", "judging/models/", "values/")
"""Files that the value judge reads; prompts belong to judges with a model."""
_MEASURED = "judging/tables/error_rates."
"""Measured error rates of the judge, which decide no verdict."""


def data_files() -> dict[str, str]:
    """Return by name the SHA-256 of every versioned file that decides a verdict, or a score's interval."""
    judging_files = {
        f"judging/{folder}/{entry.name}": hashlib.sha256(entry.read_bytes()).hexdigest()
        for folder in _FOLDERS
        for entry in sorted((files("memarena.judging") / folder).iterdir(), key=lambda e: e.name)
        if entry.name.endswith((".toml", ".txt", ".npz", ".gz"))
    }
    return {**judging_files, **word_lists.data_files()}


@cache
def value_judge_version() -> str:
    """Return the SHA-256 over ``JUDGE_VERSION``, models and tables.

    Source text is not part of it: it may change without changing the judge.
    """
    read = {n: d for n, d in data_files().items() if n.startswith(_VALUE_FILES) and not n.startswith(_MEASURED)}
    parts = [f"{name} {digest}" for name, digest in sorted(read.items())]
    return hashlib.sha256("\n".join([f"version {JUDGE_VERSION}", *parts]).encode()).hexdigest()
