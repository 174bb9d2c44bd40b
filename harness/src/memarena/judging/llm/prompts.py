"""Reads the judges' prompts from versioned files, hashes them, and fills in a question and an answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from memarena.judging.kinds import KINDS, kind_of
from memarena.judging.tables import data_file, toml_file
from memarena.log.records import JudgeTask, Question

_FILES: dict[JudgeTask, str] = {
    "answer": "answer.v2.toml",
    "behaviour": "behaviour.v2.toml",
    "bucket": "bucket.v2.toml",
    "rubric": "rubric.v3.toml",
}
"""Prompt files by task; some kinds of questions have their own."""
_DECOY = "decoy.v1.toml"
_NAME = re.compile(r"\{([a-z_]+)\}")
"""A name in braces, which :func:`fill` replaces: ``{question}``."""


@dataclass(frozen=True)
class PromptFile:
    """One prompt as its file has it. Names in braces are filled in by :func:`fill`."""

    name: str
    sha256: str
    system: str
    user: str
    again: str
    """Sent to a judge whose reply could not be used."""
    max_reply_tokens: int
    guidance: Mapping[str, str]
    """What is right, by the question's family; ``other`` is for families without their own. Empty if the task needs
    none."""


def prompt_file(task: JudgeTask) -> PromptFile:
    """Return the prompt of a task."""
    return _read(_FILES[task])


def prompt_for(task: JudgeTask, question: Question) -> PromptFile:
    """Return the prompt of a task for a question: some kinds of questions have their own."""
    return _read(kind_of(question).prompt or _FILES[task])


def prompt_files() -> tuple[PromptFile, ...]:
    """Return every prompt: those of the tasks, and those of kinds that have their own."""
    return tuple(_read(name) for name in (*_FILES.values(), *(kind.prompt for kind in KINDS.values() if kind.prompt)))


@cache
def _read(name: str) -> PromptFile:
    table = toml_file(name, "prompts")
    return PromptFile(
        name=name,
        sha256=_sha256(name),
        system=table["system"],
        user=table["user"],
        again=table["again"],
        max_reply_tokens=table["max_reply_tokens"],
        guidance=table.get("guidance", {}),
    )


def _sha256(name: str) -> str:
    return hashlib.sha256(data_file(name, "prompts")).hexdigest()


@dataclass(frozen=True)
class Decoy:
    """A question with a key to which no answer to another question can be right; ``request.py`` says what it is for."""

    sha256: str
    question: str
    gold: str
    told: str  # words: a name of the file format
    """The key's fact as a person would tell it."""


@cache
def decoy() -> Decoy:
    """Return the decoy: a question with a key that no answer to a real question can match.

    A judge that calls an answer right with this key does what the answer says instead of judging it.
    """
    table = toml_file(_DECOY, "prompts")
    return Decoy(_sha256(_DECOY), table["question"], table["gold"], table["told"])


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its names replaced, in one pass: braces inside a value stay as they are.

    Raises KeyError for a name that has no value.
    """
    return _NAME.sub(lambda match: values[match.group(1)], template)
