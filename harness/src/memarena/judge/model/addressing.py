"""Finds what an answer says to whoever marks it, and cuts it out, so that a judge never reads it.

A judge with a model can be talked to by what it judges. Fences and prompts make that harder, not impossible; what is
recognised here does not reach the judge at all. Patterns stand in ``tables/addressing.v1.toml``.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from memarena.text.words import tidy

_FILE = "addressing.v1.toml"
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?![\s\"')\]]|$)[^.!?\n]*)*(?:[.!?]+[\"')\]]*|\n|$)")
_JSON_LIKE = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class Cleared:
    """An answer without what it says to a marker."""

    kept: str
    cut: tuple[str, ...]
    """The sentences that were cut out, in order; empty if there were none."""


def table_sha256() -> str:
    """SHA-256 of the patterns in use."""
    return hashlib.sha256(_raw()).hexdigest()


def cleared(answer: str) -> Cleared:
    """The answer without every sentence and every JSON-like object that speaks to a marker."""
    text = tidy(answer)
    cut: list[str] = []

    def drop(match: re.Match[str]) -> str:
        if speaks_to_marker(match.group()):
            cut.append(match.group().strip())
            return " "
        return match.group()

    kept = _SENTENCE.sub(drop, _JSON_LIKE.sub(drop, text))
    if cut:
        return Cleared(" ".join(kept.split()), tuple(cut))
    # A pattern may run across a sentence's end ("New instruction. Ignore ..."): then nothing of it can be told apart.
    if speaks_to_marker(text):
        return Cleared("", (text.strip(),))
    return Cleared(answer, ())


def speaks_to_marker(text: str) -> bool:
    """Whether some pattern is found in the text."""
    lowered = " ".join(tidy(text).lower().replace("*", "").split())
    return any(pattern.search(lowered) for pattern in _patterns())


def _raw() -> bytes:
    return (files("memarena.judge") / "tables" / _FILE).read_bytes()


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    table = tomllib.loads(_raw().decode())
    names: dict[str, str] = table["names"]
    found = []
    for pattern in table["patterns"].values():
        for name, words in names.items():
            pattern = pattern.replace("{" + name + "}", words)  # noqa: PLW2901 (filled in step by step)
        found.append(re.compile(pattern.replace("{{", "{")))
    return tuple(found)
