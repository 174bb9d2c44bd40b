"""The tables of ``english.toml``: patterns with their pieces put in, word lists, kinds of relation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files

from memarena_backend_gated.prefilter import PrefilteredPattern

_TABLES = tomllib.loads(files(__package__).joinpath("english.toml").read_text(encoding="utf-8"))
_PIECE = re.compile(r"@(\w+)@")
_CASED = frozenset({"reported", "clause", "ties", "pair", "distant"})
"""Patterns in which a name is told by its capital."""


def _whole(pattern: str) -> str:
    while _PIECE.search(pattern):
        pattern = _PIECE.sub(lambda match: _piece(match.group(1)), pattern)
    return pattern


def _piece(name: str) -> str:
    if name != "group":
        return str(_TABLES["pieces"][name])
    words = {*kinds("kin"), *kinds("circles")}
    return f"(?P<group>{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})"


def patterns(name: str) -> tuple[PrefilteredPattern, ...]:
    """The compiled patterns of a name, in order; letter case does not count where no name is read."""
    listed = _TABLES["patterns"][name]
    flags = re.NOFLAG if name in _CASED else re.IGNORECASE
    return tuple(PrefilteredPattern(_whole(text), flags) for text in ([listed] if isinstance(listed, str) else listed))


def pattern(name: str) -> PrefilteredPattern:
    """The compiled pattern of a name that has one alone."""
    (compiled,) = patterns(name)
    return compiled


def piece(name: str) -> PrefilteredPattern:
    """A piece as a pattern of whole words."""
    return PrefilteredPattern(rf"\b(?:{_whole(_TABLES['pieces'][name])})\b", re.IGNORECASE)


def word_list(name: str) -> frozenset[str]:
    """A list of words in lower case."""
    return frozenset(_TABLES["words"][name].split())


def kinds(table: str) -> Mapping[str, str]:
    """Kind of relation by word: ``kin`` or ``circles``."""
    return {word: kind for kind, listed in _TABLES[table].items() for word in listed.split()}


def sensitive(name: str) -> str:
    """Alternatives of a category of sensitive matters."""
    return str(_TABLES["sensitive"][name])
