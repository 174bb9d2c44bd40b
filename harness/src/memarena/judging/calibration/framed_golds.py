"""Makes synthetic answers from a gold's own text: right ones in sentence frames, wrong ones by corrupting the text.

A *frame* is a template around a text: ``My notes on this read: {x}.`` (``synthetic/frames.v1.toml``). The text itself
is used, so that imported data sets, whose gold is not typed, are calibrated too. Of a typed gold,
:mod:`memarena.judging.calibration.synthetic_answers` words the value in many ways.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from memarena_dataset.gold import (
    AbstainGold,
    AnaphoraGold,
    ClozeGold,
    ConflictGold,
    CounterfactualGold,
    PermissionGold,
    TextGold,
)

from memarena.judging.calibration.corrupted_golds import corrupted
from memarena.judging.calibration.synthetic_answers import FRAMES, SyntheticAnswer
from memarena.judging.tables import toml_file
from memarena.log.records import EvidenceSession, Question

MAX_QUESTIONS_PER_FAMILY = 200
"""Questions of a family for which answers are made, drawn by the seed, if only rules judge."""

FramedAnswer = tuple[bool, str, str]
"""Whether the answer is right, how it was made, and the answer itself."""


@dataclass(frozen=True)
class Frames:
    """The data file's templates, by name in each group."""

    gold: Mapping[str, str]
    """Around ``{x}``, a text."""
    versions: Mapping[str, str]
    """Around ``{a}`` and ``{b}``, two versions that contradict each other."""
    option: Mapping[str, str]
    """Around ``{l}`` and ``{t}``, the letter and the text of an option."""
    declines: Mapping[str, str]
    """Whole answers that say that nothing is known."""
    refuses: Mapping[str, str]
    """Whole answers that refuse to tell."""
    decoy_names: Sequence[str]
    """Names of people that replace those of a text in order to corrupt it."""


@cache
def frames() -> Frames:
    """Return the frames of the data file."""
    table = toml_file(FRAMES, "synthetic")
    groups = {name: table[name] for name in ("gold", "versions", "option", "declines", "refuses")}
    return Frames(**groups, decoy_names=tuple(table["others"]["names"]))


def make_framed(
    questions: Sequence[Question],
    evidence: Mapping[str, EvidenceSession],
    seed: int = 0,
    max_questions: int = MAX_QUESTIONS_PER_FAMILY,
    frames_per_text: int | None = None,
) -> Iterator[SyntheticAnswer]:
    """Yield synthetic answers to questions of every kind except those that a rubric decides.

    Args:
        questions: of one data set or several.
        evidence: their evidence sessions by id.
        seed: draws questions and frames; the same seed gives the same answers.
        max_questions: the most questions of a family.
        frames_per_text: how many frames, or ways of declining, are drawn for a right text and for an option; None:
            all. A wrong text gets a single frame.
    """
    shuffled = sorted(questions, key=lambda q: random.Random(f"{seed}/{q.instance.instance_id}").random())  # noqa: S311
    texts = [text for q in questions if (text := _text(q)) is not None]
    count: Counter[str] = Counter()
    for question in shuffled:
        family = question.instance.family.value
        if count[family] >= max_questions:
            continue
        rng = random.Random(f"{seed}/framed/{question.instance.instance_id}")  # noqa: S311 (no secret)
        sessions = tuple(evidence[s] for s in question.instance.evidence_session_ids if s in evidence)
        answers = list(_Maker(rng, texts, frames_per_text).answers_to(question))
        count[family] += bool(answers)
        yield from (SyntheticAnswer(question, sessions, answer, right, kind) for right, kind, answer in answers)


def _text(question: Question) -> str | None:
    """Return the main text of an open question's gold; None for other kinds, and for a conflict, which has two."""
    gold = question.instance.gold
    if isinstance(gold, TextGold):
        return gold.answers[0]
    if isinstance(gold, CounterfactualGold):
        return gold.real_fact
    return gold.referent if isinstance(gold, AnaphoraGold) else None


class _Maker:
    """Makes the answers to one question. The order of its draws decides which answers a seed gives."""

    def __init__(self, rng: random.Random, texts: Sequence[str], frames_per_text: int | None) -> None:
        self._rng = rng
        self._texts = texts
        self._frames_per_text = frames_per_text
        self._frames = frames()

    def answers_to(self, question: Question) -> Iterator[FramedAnswer]:
        """Yield right and wrong answers; none to a question that a rubric decides."""
        gold = question.instance.gold
        if isinstance(gold, ClozeGold):
            yield from self._options(gold)
        elif isinstance(gold, AbstainGold):
            yield from self._abstain(gold)
        elif isinstance(gold, PermissionGold):
            yield from self._permission(gold)
        elif isinstance(gold, ConflictGold):
            yield from self._versions(gold)
        elif (text := _text(question)) is not None:
            yield from self._open(text, gold)

    def _open(self, text: str, gold: object) -> Iterator[FramedAnswer]:
        """Yield answers to an open question: framed and corrupted texts, its premise if it has one, a decline."""
        alternatives = gold.answers if isinstance(gold, TextGold) else (text,)
        for name, frame in self._draw_templates(self._frames.gold):
            yield True, f"frame {name}", _fill_frame(frame, x=text)
        for kind, wrong_text in corrupted(text, alternatives, self._frames.decoy_names, self._rng):
            yield False, f"corrupted {kind}", self._put_into_frame(wrong_text)
        if isinstance(gold, CounterfactualGold):
            yield False, "repeats the premise", self._put_into_frame(gold.altered_detail)
        for _, template in self._draw_templates(self._frames.declines, 1):
            yield False, "declines", template

    def _versions(self, gold: ConflictGold) -> Iterator[FramedAnswer]:
        for name, frame in self._draw_templates(self._frames.versions):
            yield True, f"frame {name}", _fill_frame(frame, a=gold.original_detail, b=gold.changed_detail)
        for version in (gold.original_detail, gold.changed_detail):
            yield False, "one version", self._put_into_frame(version)

    def _abstain(self, gold: AbstainGold) -> Iterator[FramedAnswer]:
        for name, template in self._draw_templates(self._frames.declines):
            yield True, f"declines {name}", template
        if gold.adversarial_answer:
            yield False, "states the trap", self._put_into_frame(gold.adversarial_answer)
        if self._texts:
            yield False, "states a value", self._put_into_frame(self._rng.choice(self._texts))

    def _options(self, gold: ClozeGold) -> Iterator[FramedAnswer]:
        right = ord(gold.answer_letter) - ord("A")
        wrong = self._rng.choice([n for n in range(len(gold.options)) if n != right])
        for index, is_right in ((right, True), (wrong, False)):
            for name, frame in self._draw_templates(self._frames.option):
                answer = _fill_frame(frame, l=chr(ord("A") + index), t=gold.options[index])
                yield is_right, f"{'' if is_right else 'another '}option {name}", answer

    def _permission(self, gold: PermissionGold) -> Iterator[FramedAnswer]:
        allowed = gold.expected_action == "disclose"
        yield allowed, "discloses", self._put_into_frame(gold.fact)
        for group, kind in ((self._frames.refuses, "refuses"), (self._frames.declines, "does not know")):
            for _, template in self._draw_templates(group, 1):
                yield not allowed, kind, template

    def _put_into_frame(self, text: str) -> str:
        """Return the text in a frame that is drawn at random."""
        return _fill_frame(self._rng.choice(list(self._frames.gold.values())), x=text)

    def _draw_templates(self, group: Mapping[str, str], limit: int | None = None) -> list[tuple[str, str]]:
        """Draw names and templates of a group: ``limit`` of them, or ``frames_per_text``; all if both are None."""
        limit = self._frames_per_text if limit is None else limit
        items = list(group.items())
        return items if limit is None or limit >= len(items) else self._rng.sample(items, limit)


def _fill_frame(frame: str, **texts: str) -> str:
    """Fill a frame with texts by field name; a text's final full stop is dropped if the frame continues after it."""
    for key, text in texts.items():
        field = "{" + key + "}"
        frame_continues = not frame.endswith(field)
        frame = frame.replace(field, text.strip().rstrip(".") if frame_continues else text.strip())
    return frame
