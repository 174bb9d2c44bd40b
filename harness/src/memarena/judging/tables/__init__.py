"""Reads the data files of judging, each with a version in its name, and the tables among them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


def data_file(name: str, folder: str = "tables") -> bytes:
    """Return the content of a data file of this package; ``folder`` is below ``judging/``."""
    return (files("memarena.judging") / folder / name).read_bytes()


@cache
def toml_file(name: str, folder: str = "tables") -> dict[str, Any]:
    """Return a data file parsed as TOML."""
    return tomllib.loads(data_file(name, folder).decode())


def word_classes() -> Mapping[str, tuple[str, ...]]:
    """Return by class the words of answers that speak of knowing, records, telling and permission."""
    return _table("word_classes.v1.txt")


def word_groups() -> Mapping[str, tuple[str, ...]]:
    """Return by class the groups of words that are read as one word, joined by underscores."""
    return _table("word_groups.v1.txt")


def synonyms_of(term: str) -> frozenset[str]:
    """Return terms with the meaning of a term, without itself; empty if the table does not have the term."""
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
    """Return words by name, from lines ``name: words``; ``#`` opens a comment."""
    rows = (line.split(":", 1) for line in _lines(name))
    return {key.strip(): tuple(members.split()) for key, members in rows}


def _lines(name: str) -> list[str]:
    lines = data_file(name).decode().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
