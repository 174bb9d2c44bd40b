"""Prepares the solver's input: the question's words, and the evidence by sentence with speaker and date."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib.resources import files

from memarena_dataset.gold import TextGold
from memarena_dataset.model import Instance
from memarena_dataset.values.phrases import tokens_of

from memarena_dataset_quality.answers import gold_values
from memarena_dataset_quality.solver.lexicon import base_id
from memarena_dataset_quality.tokenization import sentences
from memarena_dataset_quality.world import World

_FUNCTION_WORDS = frozenset(
    files("memarena_dataset_quality").joinpath("lexicons/function_words.v1.txt").read_text(encoding="utf-8").split()
)
_ENDINGS = ("ing", "ed", "es", "s")


@dataclass(frozen=True, slots=True)
class EvidenceTurn:
    """An evidence turn with its speaker, the others present, day, location and sentences."""

    speaker: str
    others: tuple[str, ...]
    """Display names of the other people in the session, without assistants."""
    ego: bool
    """Whether the ego is the speaker."""
    day: date
    location: str | None
    means: str
    """Medium of the session ("voice message")."""
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A question with its evidence. ``kinds`` are the types of the expected values, never the values themselves."""

    query: str
    kinds: tuple[str, ...]
    attribute: str | None
    """The attribute in question, for questions about a session or a community."""
    own: str
    """Id of the fact that the question is about."""
    ego: str
    people: tuple[str, ...]
    """Display names of all people of the world."""
    turns: tuple[EvidenceTurn, ...]


def task_of(world: World, instance: Instance) -> Task:
    """Return a question as the solver sees it."""
    fact = instance.metadata.get("fact_id")
    return Task(
        query=instance.query,
        kinds=tuple(dict.fromkeys(value.type for value in gold_values(instance))),
        attribute=instance.gold.attribute if isinstance(instance.gold, TextGold) else None,
        own=base_id(world, str(fact)),
        ego=world.name(instance.ego_agent_id),
        people=tuple(name for agent_id, name in world.names.items() if not agent_id.startswith("assistant_")),
        turns=tuple(_evidence_turn(world, instance, turn_id) for turn_id in instance.evidence_turn_ids),
    )


def _evidence_turn(world: World, instance: Instance, turn_id: str) -> EvidenceTurn:
    turn, session = world.turns[turn_id]
    location = world.locations.get(session.location_id or "")
    people = [person for person in session.participants if not person.startswith("assistant_")]
    return EvidenceTurn(
        speaker=world.name(turn.speaker_id),
        others=tuple(world.name(person) for person in people if person != turn.speaker_id),
        ego=turn.speaker_id == instance.ego_agent_id,
        day=world.day_of(turn.timestamp),
        location=location.name if location else None,
        means=(session.modality or "").replace("_", " "),
        sentences=tuple(sentences(turn.text)),
    )


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return a word without its commonest endings."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    word = word.removesuffix("e")
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


@lru_cache(maxsize=1 << 14)
def content(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without function words."""
    return frozenset(stem(word) for word in tokens_of(text) if word not in _FUNCTION_WORDS)


def overlap(stems: frozenset[str], sentence: str) -> float:
    """Count the stems that a sentence contains; long stems that share only their first five letters count half."""
    sentence_stems = content(sentence)
    exact = stems & sentence_stems
    beginnings = {word[:5] for word in sentence_stems - exact if len(word) >= 5}
    return len(exact) + 0.5 * sum(1 for word in stems - exact if len(word) >= 5 and word[:5] in beginnings)


def best_sentence(stems: frozenset[str], candidates: Sequence[str]) -> tuple[float, str]:
    """Return the highest overlap with ``stems`` and its sentence; the first of ties, (0.0, "") for no candidate."""
    scored = [(overlap(stems, sentence), -index, sentence) for index, sentence in enumerate(candidates)]
    best = max(scored, default=(0.0, 0, ""))
    return best[0], best[2]


def named(name: str, query: str) -> bool:
    """Whether a question names a person by full or first name."""
    return re.search(rf"\b{re.escape(name.split(maxsplit=1)[0])}\b", query) is not None
