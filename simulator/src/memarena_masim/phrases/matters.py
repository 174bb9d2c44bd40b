"""Matters: what a part of a conversation is about, read from ``banks/matters/<topic>.toml``.

A matter is one thing that somebody can tell of, with everything that talk about it draws on: what happened, details,
the reason, plans, fears and hopes, and questions with their answers. All of it speaks of the same thing, so that what
is drawn from one matter fits together in any order.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memarena_masim.errors import MasimError
from memarena_masim.phrases.grammar import Bank, Sequence_

CLAUSES: Final = ("happened", "detail", "why", "fear", "view")
"""Lists of whole clauses, spoken by the teller."""
DEEDS: Final = ("plan", "hope")
"""Lists of verb phrases; ``^`` marks each verb, in its base form."""
TALKS: Final = ("ask", "back")
"""Lists of a question and its answers: what the listener asks the teller, and the teller the listener."""
TONES: Final = ("trouble", "joy", "plain")
_LEAST = {
    "noun": 2,
    "happened": 3,
    "detail": 5,
    "why": 2,
    "fear": 2,
    "view": 2,
    "plan": 3,
    "hope": 2,
    "ask": 3,
    "back": 2,
}
_TAIL = re.compile(
    r" (?:of|with|by|in|on|for|from|behind|over|to|at|round|under|through|across|before|next|upstairs|downstairs|alone"
    r"|about|without|against|between|above|below|outside|inside|among|after|past|along|as|into|down|who|where"
    r"|everyone|I|I'm|that|which)\b.*"
)
OWNERS: Final = ("my", "our", "the", "this")


@dataclass(frozen=True, slots=True)
class Deed:
    """A verb phrase in its base form and in ``-ing``."""

    base: Sequence_
    doing: Sequence_


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and what may be answered, in words of its own."""

    question: Sequence_
    answers: tuple[Sequence_, ...]


@dataclass(frozen=True, slots=True)
class Matter:
    """One thing to talk about, by any of its ``nouns``; ``own`` is the word before it when the teller names it."""

    key: str
    tone: str
    own: str
    nouns: tuple[Sequence_, ...]
    clauses: Mapping[str, tuple[Sequence_, ...]]
    deeds: Mapping[str, tuple[Deed, ...]]
    talks: Mapping[str, tuple[Exchange, ...]]


def head(noun: str) -> str:
    """The last word of a noun phrase before what follows it: ``plan for the square`` is a ``plan``."""
    return _TAIL.sub("", noun).split(" ")[-1]


def read_matters(path: Path, bank: Bank) -> tuple[Matter, ...]:
    """The matters of a topic. MasimError names file and key of the first fault.

    ``bank`` compiles the lines, so that they may use its rules and those that it shares.
    """
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MasimError(f"matters/{path.name}: cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"matters/{path.name}: {error}") from error
    if not rows:
        raise MasimError(f"matters/{path.name}: at least one [matter] is expected")
    return tuple(_matter(key, row, bank, f"matters/{path.name}: {key}") for key, row in rows.items())


def _matter(key: str, row: Mapping[str, Any], bank: Bank, where: str) -> Matter:
    unknown = set(row) - {*_LEAST, "tone", "own"}
    if unknown:
        raise MasimError(f"{where}: {min(unknown)!r} is no list of a matter")
    for name, least in _LEAST.items():
        if len(row.get(name, ())) < least:
            raise MasimError(f"{where}.{name}: at least {least} lines are expected")
    if row.get("tone") not in TONES:
        raise MasimError(f"{where}.tone: one of {', '.join(TONES)} is expected")
    if row.get("own") not in OWNERS:
        raise MasimError(f"{where}.own: one of {', '.join(OWNERS)} is expected")

    def compiled(name: str) -> tuple[Sequence_, ...]:
        return tuple(bank.compile(line, f"{where}.{name}: {line!r}") for line in row[name])

    return Matter(
        key=key,
        tone=row["tone"],
        own=row["own"],
        nouns=compiled("noun"),
        clauses={name: compiled(name) for name in CLAUSES},
        deeds={name: tuple(_deed(line, bank, f"{where}.{name}") for line in row[name]) for name in DEEDS},
        talks={name: tuple(_exchange(lines, bank, f"{where}.{name}") for lines in row[name]) for name in TALKS},
    )


def _deed(line: str, bank: Bank, where: str) -> Deed:
    if "^" not in line:
        raise MasimError(f"{where}: {line!r}: mark the verb with ^")
    return Deed(bank.compile(line, where), bank.compile(line, where, "ing"))


def _exchange(lines: list[str], bank: Bank, where: str) -> Exchange:
    if len(lines) < 3 or not lines[0].endswith("?"):
        raise MasimError(f"{where}: a question and at least two answers are expected, not {lines!r}")
    question, *answers = (bank.compile(line, f"{where}: {line!r}") for line in lines)
    return Exchange(question, tuple(answers))
