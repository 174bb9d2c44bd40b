"""The versioned word lists in ``lexicons/``: finding, hashing and compiling them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_FOLDER = files("memarena.text") / "lexicons"
_GAP_WORDS = 8
"""How many words ``...`` may stand for."""


def data_files() -> dict[str, str]:
    """SHA-256 of every file that decides how words are read, by name."""
    return {
        f"text/{entry.name}": hashlib.sha256(entry.read_bytes()).hexdigest()
        for entry in sorted(_FOLDER.iterdir(), key=lambda e: e.name)
        if entry.name.endswith((".txt", ".json"))
    }


def read_file(name: str) -> str:
    """The text of a file."""
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def word_list(name: str) -> frozenset[str]:
    """All words of a plain list."""
    return frozenset(word for line in _lines(name) for word in line.split())


@cache
def sections(name: str) -> Mapping[str, tuple[str, ...]]:
    """Lines of a file by its ``[section]`` headings."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in _lines(name):
        if line.startswith("[") and line.endswith("]"):
            current = found.setdefault(line[1:-1], [])
        else:
            current.append(line)
    return {heading: tuple(lines) for heading, lines in found.items()}


@cache
def table(name: str) -> Mapping[str, tuple[str, ...]]:
    """Lines ``key: word word …`` of a file."""
    pairs = (line.split(":", 1) for line in _lines(name))
    return {key.strip(): tuple(words.split()) for key, words in pairs}


@cache
def phrases(name: str, section: str) -> re.Pattern[str]:
    """One pattern that matches any phrase of a section, from where it is tried; words are joined by single spaces."""
    return re.compile("|".join(f"(?:{pattern})" for _, pattern in phrase_patterns(name, section)))


@cache
def phrase_patterns(name: str, section: str) -> tuple[tuple[frozenset[str], str], ...]:
    """Each phrase of a section as a regular expression over words that end in a space, with the words that open it."""
    speech = "|".join(map(re.escape, sections(name).get("speech", ()))) or r"\Z\A"
    gap = rf"(?:(?!(?:{speech})(?: |$))[^ ]+ ){{0,{_GAP_WORDS}}}?"
    return tuple((_openings(line), _compiled(line, gap)) for line in sections(name)[section])


def _openings(line: str) -> frozenset[str]:
    """The words with which a phrase can open: those of its first items up to one that has to be there."""
    found: set[str] = set()
    for item in line.split():
        found |= {word.split("_")[0] for word in item.rstrip("?").split("|")}
        if not item.endswith("?"):
            break
    return frozenset(found)


def _compiled(line: str, gap: str) -> str:
    """A phrase as a regular expression over words that each end in a space (``$`` apart)."""
    out = ""
    for item in line.split():
        if item == "...":
            out += gap
        elif item == "$":
            out += r"\Z"
        else:
            optional = item.endswith("?")
            words = "|".join(re.escape(word.replace("_", " ")) for word in item.rstrip("?").split("|"))
            out += f"(?:(?:{words}) )" + ("?" if optional else "")
    return out


def _lines(name: str) -> list[str]:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
