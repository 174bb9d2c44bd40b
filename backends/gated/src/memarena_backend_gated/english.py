"""Reads ``english.toml``: compiles its patterns, with their ``@pieces@`` inserted, and returns its word lists."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files

from memarena_backend_gated.prefilter import PrefilteredPattern

_TABLES = tomllib.loads(files(__package__).joinpath("english.toml").read_text(encoding="utf-8"))
_PIECE = re.compile(r"@(\w+)@")
_CASED = frozenset({"reported", "clause", "ties", "pair", "distant"})
"""Patterns that recognise a name by its capital, and so are case-sensitive."""


def _insert_pieces(pattern: str) -> str:
    while _PIECE.search(pattern):
        pattern = _PIECE.sub(lambda match: _piece(match.group(1)), pattern)
    return pattern


def _piece(name: str) -> str:
    if name != "group":
        return str(_TABLES["pieces"][name])
    words = {*kinds("kin"), *kinds("circles")}
    return f"(?P<group>{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})"


def patterns(name: str) -> tuple[PrefilteredPattern, ...]:
    """Return the compiled patterns of a name, in order; case-insensitive unless they read names (`_CASED`)."""
    listed = _TABLES["patterns"][name]
    flags = re.NOFLAG if name in _CASED else re.IGNORECASE
    return tuple(
        PrefilteredPattern(_insert_pieces(text), flags) for text in ([listed] if isinstance(listed, str) else listed)
    )


def pattern(name: str) -> PrefilteredPattern:
    """Return the compiled pattern of a name that has a single one."""
    (compiled,) = patterns(name)
    return compiled


def piece(name: str) -> PrefilteredPattern:
    """Return a piece as a case-insensitive pattern that matches whole words."""
    return PrefilteredPattern(rf"\b(?:{_insert_pieces(_TABLES['pieces'][name])})\b", re.IGNORECASE)


def word_list(name: str) -> frozenset[str]:
    """Return a list of words, in lower case."""
    return frozenset(_TABLES["words"][name].split())


def kinds(table: str) -> Mapping[str, str]:
    """Return the kind of relation by word. ``table`` is ``kin`` (family) or ``circles`` (other groups)."""
    return {word: kind for kind, listed in _TABLES[table].items() for word in listed.split()}


def sensitive(name: str) -> str:
    """Return the regular expression of a category of sensitive matters."""
    return str(_TABLES["sensitive"][name])
