"""Checks proposals of a model for a pack: each check returns why a proposal is refused, or None."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from memarena_dataset.checks.overlap import function_words
from memarena_dataset.values.phrases import normal, phrase_occurs, tokens_of
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import Attribute, Catalogue, in_person
from memarena_masim.packs.check import name_problems
from memarena_masim.packs.overlap import is_shared
from memarena_masim.phrases.grammar import Bank
from memarena_masim.phrases.scenes import WEEKDAYS, read_topic
from memarena_masim.questions.question_bank import Called

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=400)]
_MARKS = re.compile(r"[|;\[\]{}<>$^#\"\n]|\d")
_WORD_OF_NAME = re.compile(r"[A-Z][a-z]{2,11}")
_LONGEST_NAME = 6
_SPELLED = re.compile(rf"\d|\b(?:{'|'.join(WEEKDAYS)})\b")


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Thing(_Reply):
    """A thing with another name and a description."""

    name: Line
    other_name: Line
    description: Line


class Things(_Reply):
    """Reply to the request for things."""

    things: Annotated[list[Thing], Field(max_length=50)]


class Lines(_Reply):
    """Reply to the request for sentences, or for names of people."""

    lines: Annotated[list[Line], Field(max_length=50)]


class Beat(_Reply):
    """A beat of a scene."""

    tell: list[Line]
    friend: list[Line]
    assistant: list[Line]


class ProposedScene(_Reply):
    """Reply to the request for a scene: the parts of a section of ``scenes/<topic>.toml``."""

    tone: Line
    thing: Line
    ask: list[Line]
    again: list[Line]
    resume: list[Line]
    also: list[Line]
    values: dict[str, str | list[str]]
    beats: list[Beat]


@dataclass(frozen=True, slots=True)
class Known:
    """The content that a proposal must not repeat: names and frames of the source pack, and the words of its talk."""

    facts: Catalogue
    things: frozenset[str]
    frames: frozenset[str]
    people: frozenset[str]
    told: frozenset[str]


def thing_fault(thing: Thing, attribute: Attribute, known: Known, called: Mapping[str, Called]) -> str | None:
    """Return why a thing is refused; None if it is accepted. ``called``: the attribute's things in the new pack."""
    names = (thing.name, thing.other_name, thing.description)
    article = all(item.startswith("the ") for item in attribute.items)
    content_words = frozenset(tokens_of(thing.name)) - function_words()
    values = attribute.kind.choices if attribute.kind.type in ("name", "place", "term") else ()
    faults = {
        "has a mark or a number": any(map(_MARKS.search, names)),
        "has a capital": thing.name != thing.name.lower(),
        "begins without 'the'": article and not all(name.startswith("the ") for name in names[:2]),
        "is no name of one to six words": not content_words or len(thing.name.split()) > _LONGEST_NAME,
        "is in the source pack": any(normal(name) in known.things for name in names[:2]),
        "its other name is the same": normal(thing.name) == normal(thing.other_name),
        "its other name has more words": frozenset(tokens_of(thing.other_name)) - function_words() > content_words,
        "its description repeats it": content_words <= set(tokens_of(thing.description)),
        "holds a value": any(phrase_occurs(value, normal(name)) for value in values for name in names),
        "comes up in other talk": not known.facts.distinctive(thing.name),
    }
    first = next((fault for fault, holds in faults.items() if holds), None)
    if first is not None:
        return first
    together = {**called, thing.name: Called((thing.other_name,), thing.description)}
    return next((problem for *_, problem, doubtful in name_problems(together) if not doubtful), None)


def frame_fault(line: str, known: Known, mine: Collection[str]) -> str | None:
    """Return why a sentence that states a detail is refused; None if it is accepted."""
    bank = Bank()
    try:
        slots = bank.slots_of(bank.compile(in_person(line, "told"), "proposal"))
    except MasimError as error:
        return str(error)
    faults = {
        "lacks $item": line.count("$item") != 1,
        "lacks $v": line.count("$v") != 1,
        "lacks $I or $my": "subject" not in slots,
        "has a slot that has no value": bool(slots - {"item", "v", "subject"}),
        "has a number or a day": bool(_SPELLED.search(line)),
        "refers to a rule": bool(bank.wanted),
        "is too short or too long": not 4 <= len(line.split()) <= 25,
        "says I, my or me by itself": bool(re.search(r"\b(?:I|my|me|mine)\b", re.sub(r"\$\w+", "", line))),
        "is in the source pack": normal(line) in known.frames,
        "was proposed before": line in mine,
    }
    return next((fault for fault, holds in faults.items() if holds), None)


def person_fault(name: str, known: Known, mine: Collection[str]) -> str | None:
    """Return why the name of a person is refused; None if it is accepted."""
    if not _WORD_OF_NAME.fullmatch(name):
        return "is no name of one word"
    if normal(name) in known.people:
        return "is in the source pack"
    return "was proposed before" if name in mine else None


def scene_fault(path: Path, key: str, scene: Mapping[str, Any], known: Known) -> str | None:
    """Return why a scene is refused, which is in the topic at ``path`` under ``key``; None if it is accepted."""
    spoken = [line for beat in scene["beats"] for lines in beat.values() for line in lines]
    bad = next((line for line in spoken if _SPELLED.search(line)), None)
    if bad is not None:
        return f"has a number or a day: {bad!r}"
    try:
        written = next(
            topic_scene for topic_scene in read_topic(path).scenes if topic_scene.key == f"{path.stem}.{key}"
        )
    except (MasimError, IndexError) as error:
        return str(error)
    return "is in the source pack" if is_shared(written, known.told) else None


def row_of(attribute: str, thing: Thing) -> str:
    """Return the line of a thing in ``questions/items.txt``."""
    return f"{attribute} | {thing.name} | {thing.other_name} | {thing.description}"


def listed(values: Sequence[str]) -> str:
    """Return values as one line of a prompt."""
    return "; ".join(values)
