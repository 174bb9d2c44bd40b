"""Data files of judging, each with a version in its name, and the tables among them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


def data_file(name: str, folder: str = "tables") -> bytes:
    """What is in a data file of this package, of a folder next to this one."""
    return (files("memarena.judging") / folder / name).read_bytes()


@cache
def toml_file(name: str, folder: str = "tables") -> dict[str, Any]:
    """A data file as TOML."""
    return tomllib.loads(data_file(name, folder).decode())


def word_classes() -> Mapping[str, tuple[str, ...]]:
    """Words by what they do in an answer that speaks of knowing, records, telling and permission."""
    return _table("word_classes.v1.txt")


def word_groups() -> Mapping[str, tuple[str, ...]]:
    """Groups of words that are read as one, joined by underscores, by class."""
    return _table("word_groups.v1.txt")


def synonyms_of(term: str) -> frozenset[str]:
    """Terms that convey the same as a term, itself not among them; empty for terms that the table does not have."""
    plain = _plain(term)
    groups = _synonyms()
    return groups.get(plain, frozenset()) - {plain}


@cache
def _synonyms() -> Mapping[str, frozenset[str]]:
    groups = [frozenset(_plain(term) for term in line.split(",")) for line in _lines("synonyms.v1.txt")]
    return {term: group for group in groups for term in group}


def _plain(term: str) -> str:
    return " ".join(term.casefold().split()).removeprefix("the ").removeprefix("an ").removeprefix("a ")


@cache
def _table(name: str) -> Mapping[str, tuple[str, ...]]:
    """Lines ``name: words`` of a table; ``#`` opens a comment."""
    rows = (line.split(":", 1) for line in _lines(name))
    return {key.strip(): tuple(members.split()) for key, members in rows}


def _lines(name: str) -> list[str]:
    lines = data_file(name).decode().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
