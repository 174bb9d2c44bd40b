"""Reads the word lists of this package: function words, everyday English, units."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_FOLDER = files("memarena_dataset.values") / "lists"


def data_files() -> dict[str, str]:
    """Return the SHA-256 of every list, by name."""
    entries = sorted(_FOLDER.iterdir(), key=lambda entry: entry.name)
    return {f"values/{e.name}": hashlib.sha256(e.read_bytes()).hexdigest() for e in entries if e.name.endswith(".txt")}


@cache
def word_list(name: str) -> frozenset[str]:
    """Return all words of a plain list."""
    return frozenset(word for line in _lines(name) for word in line.split())


@cache
def word_section(name: str, title: str) -> frozenset[str]:
    """Return the words of a plain list between the comment ``title`` and the next comment."""
    lines = (_FOLDER / name).read_text(encoding="utf-8").split(f"\n# {title}\n")[1].split("\n#")[0]
    return frozenset(lines.split())


@cache
def table(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the words by key of a file with lines ``key: word word …``."""
    pairs = (line.split(":", 1) for line in _lines(name))
    return {key.strip(): tuple(words.split()) for key, words in pairs}


def _lines(name: str) -> list[str]:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
