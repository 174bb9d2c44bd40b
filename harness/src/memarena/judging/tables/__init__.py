"""Tables of judging, as data files with a version in their name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def word_classes() -> Mapping[str, tuple[str, ...]]:
    """Words by what they do in an answer that speaks of knowing, records, telling and permission."""
    return _table("word_classes.v1.txt")


def word_groups() -> Mapping[str, tuple[str, ...]]:
    """Groups of words that are read as one, joined by underscores, by class."""
    return _table("word_groups.v1.txt")


def synonyms_of(term: str) -> frozenset[str]:
    """Terms that convey the same as a term, itself not among them; empty for terms that the table does not have."""
    wanted = _plain(term)
    groups = _synonyms()
    return groups.get(wanted, frozenset()) - {wanted}


@cache
def _synonyms() -> Mapping[str, frozenset[str]]:
    text = (files("memarena.judging.tables") / "synonyms.v1.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    groups = [frozenset(_plain(term) for term in line.split(",")) for line in lines]
    return {term: group for group in groups for term in group}


def _plain(term: str) -> str:
    return " ".join(term.casefold().split()).removeprefix("the ").removeprefix("an ").removeprefix("a ")


@cache
def _table(name: str) -> Mapping[str, tuple[str, ...]]:
    """Lines ``name: words`` of a table; ``#`` opens a comment."""
    text = (files("memarena.judging.tables") / name).read_text(encoding="utf-8")
    rows = (line.split(":", 1) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {key.strip(): tuple(members.split()) for key, members in rows}
