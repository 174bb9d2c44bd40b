"""Makes synthetic answers to open questions with typed gold, right and wrong ones, to measure how often a judge errs.

A file of phrasings (``synthetic/held_out.v7.toml``) has templates of right and of wrong answers by *shape* of the gold
(``plain``, ``conflict``, ``counterfactual``) and *kind* of answer (``terse``, ``hedged``, ``injected`` …), ways to say
a value (``[say]``), and things that no data set mentions (``things``). Fields of a template:

=======  ===============================================================================================
field    text
=======  ===============================================================================================
{v}      the gold's values, each said in one of the ways of its type; several are joined by "and"
{c}      the values of the second version, of a conflict
{a}      the values of the wrong premise, of a counterfactual question
{o}      a near value: the gold's first value, changed a little (another day, a few euros more)
{p}      another value: of the same type, from another gold of the data set, and unlike the gold's
{x} {y}  two things that neither question nor evidence mentions
{who}    the first name of a speaker in the evidence
{day}    the day of the evidence
{q}      the question
=======  ===============================================================================================
"""

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
"""File of answers that show a behaviour (D6); used with every file of phrasings."""
FRAMES = "frames.v1.toml"
"""File of sentence frames around a gold's own text; used with every file of phrasings."""

_MIN_PER_WRONG_KIND = 2
"""Answers of each wrong kind per question, if no minimum per family asks for more."""
_SURPLUS = 1.3
"""Planned answers per answer that is needed: some templates cannot be filled from the data set, or give duplicates."""
_DISTRACTOR_DRAWS = 8
"""Draws of a near or another value until one is not in use in the answer."""


@dataclass(frozen=True)
class SyntheticAnswer:
    """An answer of which it is known whether it is right."""

    question: Question
    evidence: tuple[EvidenceSession, ...]
    answer: str
    right: bool
    kind: str
    """How it was made, for example ``terse`` or ``injected``."""


@dataclass(frozen=True)
class AnswerContext:
    """Everything but the gold from which templates of answers to one question are filled."""

    things: Sequence[str]
    """Things that may be made up, for ``{x}`` and ``{y}``."""
    say: Mapping[str, Sequence[str]]
    """Ways to say a value (``{day} {month}``), by the value's kind."""
    question: Question
    evidence: Sequence[EvidenceSession]
    pool: Sequence[Value]
    """Values of all golds of the data set, for ``{p}``."""
    rng: random.Random

    def say_value(self, value: Value) -> str:
        """Return a value as text, in one of the ways of its kind."""
        form = self.rng.choice(list(self.say[kind_of(value)]))
        return say(value, form, day_of(self.question.asked_at))


@dataclass(frozen=True)
class _PhrasingFile:
    """The content of a file of phrasings. ``right`` and ``wrong`` have templates by shape of the gold, then by kind."""

    things: tuple[str, ...]
    say: Mapping[str, Sequence[str]]
    right: Mapping[str, Mapping[str, Sequence[str]]]
    wrong: Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class _Quota:
    """Answers to draw for one question: of each right kind, and of each wrong kind."""

    per_right_kind: int
    per_wrong_kind: int


def make_answers(
    questions: Sequence[Question],
    evidence: Mapping[str, EvidenceSession],
    phrasings: Phrasings,
    seed: int = 0,
    per_kind: int = 3,
    min_answers: int = 0,
) -> Iterator[SyntheticAnswer]:
    """Yield synthetic answers to every open question with typed gold; other questions are skipped.

    Args:
        questions: of one data set or several.
        evidence: their evidence sessions by id.
        phrasings: which file of phrasings.
        seed: the same seed gives the same answers.
        per_kind: how many answers of each right kind per question; of each wrong kind there are up to two.
        min_answers: right answers, and as many wrong ones, to make for each family if there are enough templates; a
            family of few questions gets more per question.
    """
    phrases = _read_phrasings(phrasings)
    pool = [value for q in questions for value in _gold_values(q.instance.gold)]
    typed_questions = [q for q in questions if _gold_values(q.instance.gold)]
    questions_by_family = Counter(q.instance.family for q in typed_questions)
    for question in typed_questions:
        gold = question.instance.gold
        per_question = math.ceil(_SURPLUS * min_answers / questions_by_family[question.instance.family])
        right_kinds = len(phrases.right[_shape(gold)])
        wrong_kinds = len(phrases.wrong[_shape(gold)]) - 1  # the kind `invented` is not made of every gold
        quota = _Quota(
            per_right_kind=max(per_kind, math.ceil(per_question / right_kinds)),
            per_wrong_kind=max(_MIN_PER_WRONG_KIND, math.ceil(per_question / wrong_kinds)),
        )
        sessions = tuple(evidence[s] for s in question.instance.evidence_session_ids if s in evidence)
        rng = random.Random(f"{seed}/{phrasings}/{question.instance.instance_id}")  # noqa: S311 (no secret)
        context = AnswerContext(phrases.things, phrases.say, question, sessions, pool, rng)
        answers: set[str] = set()
        for right, kind, template in _draw_templates(phrases, gold, quota, rng):
            answer = fill_template(template, context, gold)
            if answer is not None and answer not in answers:
                answers.add(answer)
                yield SyntheticAnswer(question, sessions, answer, right, kind)


def phrasings_sha256(phrasings: Phrasings) -> str:
    """Return the SHA-256 of the data files of answers: phrasings, behaviours and frames, in this order."""
    names = (_FILES[phrasings], BEHAVIOURS, FRAMES)
    return hashlib.sha256(b"".join(data_file(name, "synthetic") for name in names)).hexdigest()


def fill_template(template: str, context: AnswerContext, gold: Gold) -> str | None:
    """Return an answer made from a template, or None if the data set has nothing for one of its fields.

    Args:
        template: with the fields of this module's table.
        context: the question, and what the fields are filled from.
        gold: the question's; None is returned for every gold that is not open.
    """
    if not isinstance(gold, OpenGold) or (gold.kind == "counterfactual" and not gold.premise_values):
        return None
    values_by_field = (("v", gold.values), ("c", gold.other_values), ("a", gold.premise_values))
    fields = {name: " and ".join(map(context.say_value, values)) for name, values in values_by_field if values}
    used_values = [*_gold_values(gold), *gold.premise_values]
    for name in ("o", "p"):
        if "{" + name + "}" not in template:
            continue
        value = _draw_distractor(name, gold.values[0], used_values, context)
        if value is None:
            return None
        used_values.append(value)
        fields[name] = context.say_value(value)
    if "{x}" in template or "{y}" in template:
        things = _unmentioned_things(context)
        if len(things) < 2:
            return None
        fields |= {"x": things[0], "y": things[-1]}
    fields |= {"who": _evidence_speaker(context), "day": _evidence_day(context), "q": context.question.question_text}
    text = fill(template, fields)
    return text[0].upper() + text[1:] if template[0] != "{" else text


@cache
def _read_phrasings(phrasings: Phrasings) -> _PhrasingFile:
    table = toml_file(_FILES[phrasings], "synthetic")
    return _PhrasingFile(tuple(table["things"]), table["say"], table["right"], table["wrong"])


def _gold_values(gold: Gold) -> tuple[Value, ...]:
    """Return the values that a right answer states; empty if the gold is not fully typed."""
    return gold.required_values if isinstance(gold, OpenGold) else ()


def _shape(gold: Gold) -> str:
    """Return the heading under which a file of phrasings has the templates for a gold."""
    return {"conflict": "conflict", "counterfactual": "counterfactual"}.get(gold.kind, "plain")


def _draw_templates(
    phrases: _PhrasingFile, gold: Gold, quota: _Quota, rng: random.Random
) -> Iterator[tuple[bool, str, str]]:
    """Yield whether its answer is right, the kind and the template, for each answer to make."""
    for kind, templates in phrases.right[_shape(gold)].items():
        for template in rng.sample(list(templates), min(quota.per_right_kind, len(templates))):
            yield True, kind, template
    for kind, templates in phrases.wrong[_shape(gold)].items():
        # Invented things compete with things and places only; a second date or name is of the kind `hostile`.
        if kind == "invented" and not all(v.type in ("term", "place") for v in _gold_values(gold)):
            continue
        for template in rng.sample(list(templates), min(quota.per_wrong_kind, len(templates))):
            yield False, kind, template


def _draw_distractor(field: str, value: Value, used: Sequence[Value], context: AnswerContext) -> Value | None:
    """Return a wrong value for a field, ``o`` or ``p``, that is not in use; None if no draw gives such a value."""
    draw = near if field == "o" else another
    for _ in range(_DISTRACTOR_DRAWS):
        candidate = draw(value, context.pool, context.rng)
        if candidate is not None and candidate not in used:
            return candidate
    return None


def _unmentioned_things(context: AnswerContext) -> list[str]:
    """Return the things of which no content word is in question or evidence, in random order."""
    texts = [context.question.question_text, *(turn.text for s in context.evidence for turn in s.turns)]
    mentioned = {word for text in texts for word in words(text)}
    grammar = {"a", "an", "the", "of", "two", "three"}
    things = [thing for thing in context.things if not (set(words(thing)) - grammar) & mentioned]
    context.rng.shuffle(things)
    return things


def _evidence_speaker(context: AnswerContext) -> str:
    """Return the first name of a speaker in the evidence, drawn at random, or a default without evidence."""
    speakers = [turn.speaker for s in context.evidence for turn in s.turns]
    return context.rng.choice(sorted(set(speakers))).split()[0] if speakers else "Somebody"


def _evidence_day(context: AnswerContext) -> str:
    """Return the day of the first evidence session (``May 3``), or "that day" if there is none or it has no date."""
    day = day_of(context.evidence[0].started_at) if context.evidence else None
    return f"{day:%B} {day.day}" if day else "that day"
