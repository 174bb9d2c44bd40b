"""Loads the versioned files of prompts and parsing rules, which decide how readers are asked, and hashes them.

The hashes are recorded with each run: two runs with other prompts must not be compared.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

PROMPT_FILE = "prompts/answer.v2.toml"
INFERRED_FILE = "prompts/inferred.v1.toml"
CONTROLS_FILE = "prompts/controls.v1.toml"
PARSING_FILE = "tables/parsing.v2.toml"


@dataclass(frozen=True, slots=True)
class PromptText:
    """Words and marker lines of a prompt."""

    system: str
    context_start: str
    context_end: str
    item_start: str
    nothing_found: str  # words: a name of the file format
    asked_at: str
    asked_by: str
    question: str
    asker_owner: str
    asker_known_person: str
    asker_known_person_related: str
    asker_anonymous: str


@dataclass(frozen=True, slots=True)
class ControlText:
    """Words of control experiments; only runs that enable such an experiment use them."""

    policy_header: str
    access_denied: str
    access_allowed: str


@dataclass(frozen=True, slots=True)
class ParsingTable:
    """Keys, headings and markers by which an answer is parsed from a reply."""

    answer_keys: tuple[str, ...]
    reason_keys: tuple[str, ...]
    true_word: str
    false_word: str
    unknown_word: str
    status_keys: tuple[str, ...]
    unknown_statuses: tuple[str, ...]
    thinking: tuple[tuple[str, str], ...]
    channel: str
    final_channel: str
    channel_message: str
    thinking_headings: tuple[str, ...]
    answer_headings: tuple[str, ...]
    reason_headings: tuple[str, ...]
    stray_tokens: tuple[str, ...]


def _data(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def _table(name: str, expected: Mapping[str, object]) -> dict[str, object]:
    table = tomllib.loads(_data(name).decode())
    if table.keys() != expected.keys():
        raise ValueError(f"{name}: keys differ from what the code uses: {sorted(table.keys() ^ expected.keys())}")
    return table


@cache
def prompt_text() -> PromptText:
    """Return the words of prompts. Raises ValueError if the file's keys are not those of :class:`PromptText`."""
    table = _table(PROMPT_FILE, {f.name: None for f in fields(PromptText)})
    return PromptText(**{key: str(value).strip("\n") for key, value in table.items()})


@cache
def inferred_system() -> str:
    """Return the system text without the rules of D6 (permission questions)."""
    return str(_table(INFERRED_FILE, {"system": None})["system"]).strip("\n")


@cache
def control_text() -> ControlText:
    """Return the words of control experiments."""
    table = _table(CONTROLS_FILE, {f.name: None for f in fields(ControlText)})
    return ControlText(**{key: str(value).strip("\n") for key, value in table.items()})


def _strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(str(item) for item in value)


@cache
def parsing_table() -> ParsingTable:
    """Return the table by which replies are parsed."""
    table = _table(PARSING_FILE, {f.name: None for f in fields(ParsingTable)})
    pairs = table["thinking"]
    assert isinstance(pairs, list)
    return ParsingTable(
        answer_keys=_strings(table["answer_keys"]),
        reason_keys=_strings(table["reason_keys"]),
        true_word=str(table["true_word"]),
        false_word=str(table["false_word"]),
        unknown_word=str(table["unknown_word"]),
        status_keys=_strings(table["status_keys"]),
        unknown_statuses=_strings(table["unknown_statuses"]),
        thinking=tuple((str(opening), str(closing)) for opening, closing in pairs),
        channel=str(table["channel"]),
        final_channel=str(table["final_channel"]),
        channel_message=str(table["channel_message"]),
        thinking_headings=_strings(table["thinking_headings"]),
        answer_headings=_strings(table["answer_headings"]),
        reason_headings=_strings(table["reason_headings"]),
        stray_tokens=_strings(table["stray_tokens"]),
    )


def data_files() -> dict[str, str]:
    """Return the SHA-256 (hex) of every file that can decide a score, by its name within this package."""
    names = (PROMPT_FILE, INFERRED_FILE, CONTROLS_FILE, PARSING_FILE)
    return {f"memarena_answering/{name}": hashlib.sha256(_data(name)).hexdigest() for name in names}
