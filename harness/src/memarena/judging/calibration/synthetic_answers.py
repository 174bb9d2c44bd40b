"""Makes answers whose truth is known: right and wrong ones, in many phrasings, around a data set's own gold."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from memarena_dataset.gold import Gold, OpenGold
from memarena_dataset.values import Value
from memarena_dataset.values.words import words

from memarena.judging.calibration.value_paraphrases import another, fill, kind_of, near, say
from memarena.judging.tables import data_file, toml_file
from memarena.judging.typed_value.question import day_of
from memarena.log.records import EvidenceSession, Question

Phrasings = Literal["held_out"]

_FILES: Mapping[Phrasings, str] = {"held_out": "held_out.v7.toml"}
BEHAVIOURS = "behaviours.v1.toml"
"""Phrasings of behaviours, which are always among them, whatever file the others come from."""
FRAMES = "frames.v1.toml"
"""Frames around golds as they stand, which are always among them too."""


@dataclass(frozen=True)
class SyntheticAnswer:
    """An answer whose truth is known. ``kind`` is how it was made, for example ``terse`` or ``injected``."""

    question: Question
    evidence: tuple[EvidenceSession, ...]
    answer: str
    right: bool
    kind: str


_WRONG = 2
"""Answers of each wrong kind per question."""
_SPARE = 1.3
"""So many times what is wanted is planned: some phrasings need what a data set has not got, or come out alike."""


@dataclass(frozen=True)
class _Each:
    """Answers of each kind per question."""

    right: int
    wrong: int


@dataclass(frozen=True)
class _Phrases:
    things: tuple[str, ...]
    say: Mapping[str, Sequence[str]]
    right: Mapping[str, Mapping[str, Sequence[str]]]
    wrong: Mapping[str, Mapping[str, Sequence[str]]]


def make_answers(
    questions: Sequence[Question],
    evidence: Mapping[str, EvidenceSession],
    phrasings: Phrasings,
    seed: int = 0,
    per_kind: int = 3,
    least: int = 0,
) -> Iterator[SyntheticAnswer]:
    """Synthetic answers to every open question with typed gold.

    Args:
        questions: of one data set or several; others than open typed ones are passed over.
        evidence: their evidence sessions by id.
        phrasings: which file of phrasings.
        seed: the same seed gives the same answers.
        per_kind: how many answers of each right kind per question; of each wrong kind there are up to two.
        least: so many right and so many wrong answers for each family, as far as there are phrasings; a family of few
            questions gets more per question.
    """
    phrases = _phrases(phrasings)
    pool = [v for q in questions for v in _values(q.instance.gold)]
    every = [q for q in questions if _values(q.instance.gold)]
    count = Counter(q.instance.family for q in every)
    for question in every:
        gold = question.instance.gold
        needed = math.ceil(_SPARE * least / count[question.instance.family])
        each = _Each(
            right=max(per_kind, math.ceil(needed / len(phrases.right[_shape(gold)]))),
            wrong=max(_WRONG, math.ceil(needed / (len(phrases.wrong[_shape(gold)]) - 1))),
        )
        sessions = tuple(evidence[s] for s in question.instance.evidence_session_ids if s in evidence)
        rng = random.Random(f"{seed}/{phrasings}/{question.instance.instance_id}")  # noqa: S311 (no secret)
        answers: set[str] = set()
        for right, kind, template in _templates(phrases, gold, each, rng):
            answer = answer_from(template, Around(phrases.things, phrases.say, question, sessions, pool, rng), gold)
            if answer is not None and answer not in answers:
                answers.add(answer)
                yield SyntheticAnswer(question, sessions, answer, right, kind)


def phrasings_sha256(phrasings: Phrasings) -> str:
    """SHA-256 of what answers are made from: the files of phrasings, of behaviours and of frames, in this order."""
    names = (_FILES[phrasings], BEHAVIOURS, FRAMES)
    return hashlib.sha256(b"".join(data_file(name, "synthetic") for name in names)).hexdigest()


@cache
def _phrases(phrasings: Phrasings) -> _Phrases:
    table = toml_file(_FILES[phrasings], "synthetic")
    return _Phrases(tuple(table["things"]), table["say"], table["right"], table["wrong"])


def _values(gold: Gold) -> tuple[Value, ...]:
    """Values that an answer is built around; empty where gold is not fully typed."""
    return gold.required_values if isinstance(gold, OpenGold) else ()


def _shape(gold: Gold) -> str:
    return {"conflict": "conflict", "counterfactual": "counterfactual"}.get(gold.kind, "plain")


def _templates(phrases: _Phrases, gold: Gold, each: _Each, rng: random.Random) -> Iterator[tuple[bool, str, str]]:
    for kind, templates in phrases.right[_shape(gold)].items():
        for template in rng.sample(list(templates), min(each.right, len(templates))):
            yield True, kind, template
    for kind, templates in phrases.wrong[_shape(gold)].items():
        # Things that were never mentioned compete with things alone; a second date or name is `hostile`.
        if kind == "invented" and not all(v.type in ("term", "place") for v in _values(gold)):
            continue
        for template in rng.sample(list(templates), min(each.wrong, len(templates))):
            yield False, kind, template


@dataclass(frozen=True)
class Around:
    """What an answer is built from besides its gold. ``say`` has ways to say a value of each kind."""

    things: Sequence[str]
    say: Mapping[str, Sequence[str]]
    question: Question
    evidence: Sequence[EvidenceSession]
    pool: Sequence[Value]
    rng: random.Random

    def worded(self, value: Value) -> str:
        """A value in one of the ways that this set of phrasings has."""
        form = self.rng.choice(list(self.say[kind_of(value)]))
        return say(value, form, day_of(self.question.asked_at))


def answer_from(template: str, around: Around, gold: Gold) -> str | None:
    """The template filled in; None where the data set has nothing to fill it with."""
    if not isinstance(gold, OpenGold) or (gold.kind == "counterfactual" and not gold.premise_values):
        return None
    first, used = gold.values[0], [*_values(gold), *gold.premise_values]
    values_of = (("v", gold.values), ("c", gold.other_values), ("a", gold.premise_values))
    fields = {name: " and ".join(around.worded(v) for v in values) for name, values in values_of if values}
    for name in ("o", "p"):
        if "{" + name + "}" not in template:
            continue
        other = _other(name, first, used, around)
        if other is None:
            return None
        used.append(other)
        fields[name] = around.worded(other)
    if "{x}" in template or "{y}" in template:
        things = _unmentioned(around)
        if len(things) < 2:
            return None
        fields |= {"x": things[0], "y": things[-1]}
    fields |= {"who": _speaker(around), "day": _day(around), "q": around.question.question_text}
    text = fill(template, fields)
    return text[0].upper() + text[1:] if template[0] != "{" else text


def _other(name: str, value: Value, used: Sequence[Value], around: Around) -> Value | None:
    """A near value or another's, that is none of those in use already."""
    find = near if name == "o" else another
    for _ in range(8):
        candidate = find(value, around.pool, around.rng)
        if candidate is not None and candidate not in used:
            return candidate
    return None


def _unmentioned(around: Around) -> list[str]:
    """Things of which neither question nor evidence has a word, in random order."""
    texts = [around.question.question_text, *(t.text for s in around.evidence for t in s.turns)]
    mentioned = {word for text in texts for word in words(text)}
    grammar = {"a", "an", "the", "of", "two", "three"}
    things = [t for t in around.things if not (set(words(t)) - grammar) & mentioned]
    around.rng.shuffle(things)
    return things


def _speaker(around: Around) -> str:
    speakers = [t.speaker for s in around.evidence for t in s.turns]
    return around.rng.choice(sorted(set(speakers))).split()[0] if speakers else "Somebody"


def _day(around: Around) -> str:
    """The day of the evidence, where that is no part of what is asked."""
    day = day_of(around.evidence[0].started_at) if around.evidence else None
    return f"{day:%B} {day.day}" if day else "that day"
