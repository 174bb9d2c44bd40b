"""Draws answers for people to judge: open answers by family and verdict, D6 answers by label and action.

The labels of people show how far a judge can be trusted. Verdicts and labels that are rare in a run are drawn as often
as others if there are enough, since errors on them would else be seen on too few answers.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from memarena_dataset.model import Family
from pydantic import BaseModel, ConfigDict

from memarena.judging.errors import JudgeError
from memarena.judging.judgment import Judgment
from memarena.judging.judgments import evidence_of
from memarena.judging.kinds import kind_of
from memarena.log.records import EvidenceSession, Question, QuestionAsked
from memarena.log.store import log_path, read_records

BINARY_ITEMS = 300
"""Open answers that are drawn by default."""
BEHAVIOUR_ITEMS = 200
"""Answers to D6 questions that are drawn by default."""
TRACKS: tuple[Literal["binary", "behaviour"], ...] = ("binary", "behaviour")
BINARY_LABELS = ("correct", "wrong")
BEHAVIOUR_LABELS = ("disclose_correct", "disclose_wrong", "refuse", "dont_know", "other")

T = TypeVar("T")


class _File(BaseModel):
    """A file of a sample, or a part of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SampleItem(_File):
    """One answer for a person to judge. It carries no verdict."""

    item: str
    """``b001`` and on for right or wrong, ``d001`` and on for behaviour."""
    track: Literal["binary", "behaviour"]
    cell_id: str
    instance_id: str
    attempt: int
    family: Family
    asked_on: str
    question: str
    gold: str
    evidence: tuple[str, ...]
    """Lines of the evidence sessions; empty for behaviour."""
    answer: str
    choices: tuple[str, ...]


class Sample(_File):
    """``sample.json``: what people judge."""

    schema_version: Literal[1] = 1
    run_id: str
    judge: str
    """The judge whose verdicts decide the strata."""
    seed: int
    items: tuple[SampleItem, ...]

    def sha256(self) -> str:
        """Return the SHA-256 over run and items, which binds a file of labels to its sample."""
        covered = (self.run_id, *(i.model_dump_json() for i in self.items))
        return hashlib.sha256("\n".join(covered).encode()).hexdigest()

    def check_run(self, run_dir: Path, own: str) -> None:
        """Raise JudgeError unless the sample was drawn from this run. ``own`` is the sample's path, for messages.

        Another run of the same data set has the same cells and questions, so only the run id shows the difference.
        """
        run_id = next((r.run_id for r in read_records(run_dir, "run_started") if r.kind == "run_started"), None)
        if run_id != self.run_id:
            other = "holds no run yet" if run_id is None else f"is of run {run_id}"
            raise JudgeError(f"{own}: run_id: this sample is of run {self.run_id}, the log {log_path(run_dir)} {other}")


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer with a judge's judgment of it."""

    question: Question
    attempt: QuestionAsked
    judgment: Judgment


def draw_sample(
    run_id: str,
    judge: str,
    answers: Sequence[JudgedAnswer],
    sessions: Mapping[str, EvidenceSession],
    seed: int,
    *,
    binary_items: int = BINARY_ITEMS,
    behaviour_items: int = BEHAVIOUR_ITEMS,
) -> Sample:
    """Draw open answers by family and judgment, and D6 answers by label and action; all if there are fewer.

    People see no verdict.

    Args:
        run_id: the run's.
        judge: whose judgments decide the strata.
        answers: all that the judge judged.
        sessions: evidence by id.
        seed: the same seed draws the same sample.
        binary_items: open answers to draw.
        behaviour_items: answers of D6 to draw.
    """
    rng = random.Random(seed)  # noqa: S311 (no secret)
    binary = [a for a in answers if not _is_behaviour(a.question)]
    behaviour = [a for a in answers if _is_behaviour(a.question)]
    drawn = [
        *_draw_stratified(binary, binary_items, _binary_stratum, rng),
        *_draw_stratified(behaviour, behaviour_items, _behaviour_stratum, rng),
    ]
    items = []
    for track, prefix in (("binary", "b"), ("behaviour", "d")):
        track_answers = [a for a in drawn if _is_behaviour(a.question) == (track == "behaviour")]
        rng.shuffle(track_answers)
        items += [_item(f"{prefix}{n:03d}", a, sessions) for n, a in enumerate(track_answers, 1)]
    return Sample(run_id=run_id, judge=judge, seed=seed, items=tuple(items))


def _is_behaviour(question: Question) -> bool:
    return kind_of(question).task == "behaviour"


def _binary_stratum(answer: JudgedAnswer) -> Hashable:
    """Return family, half of D5 and judgment: the two halves of D5 are drawn separately."""
    instance = answer.question.instance
    return instance.family.value, not instance.gold.answerable, answer.judgment.correct


def _behaviour_stratum(answer: JudgedAnswer) -> Hashable:
    disclosure = answer.judgment.disclosure
    assert disclosure is not None
    return disclosure.label, "disclose" if disclosure.allowed else "withhold"


def _draw_stratified(pool: Sequence[T], size: int, stratum: Callable[[T], Hashable], rng: random.Random) -> list[T]:
    """Draw ``size`` members with strata as equal as possible.

    Small strata are drawn completely, the others share what remains of ``size``.
    """
    strata: dict[Hashable, list[T]] = {}
    for member in pool:
        strata.setdefault(stratum(member), []).append(member)
    # From the smallest stratum up: what it cannot give is shared by the larger ones.
    missing, drawn = min(size, len(pool)), []
    groups = sorted(strata.items(), key=lambda g: (len(g[1]), repr(g[0])))
    for number, (_, group) in enumerate(groups):
        share = min(len(group), missing // (len(groups) - number))
        drawn += rng.sample(group, share)
        missing -= share
    return drawn


def _item(name: str, answer: JudgedAnswer, sessions: Mapping[str, EvidenceSession]) -> SampleItem:
    """Return an answer as an item of the sample, without its verdict."""
    question = answer.question
    behaviour = _is_behaviour(question)
    return SampleItem(
        item=name,
        track="behaviour" if behaviour else "binary",
        cell_id=answer.attempt.cell_id,
        instance_id=answer.attempt.instance_id,
        attempt=answer.attempt.attempt,
        family=question.instance.family,
        asked_on=question.asked_at[:10],
        question=question.question_text,
        gold=kind_of(question).key(question.instance.gold),
        evidence=() if behaviour else tuple(_evidence_lines(evidence_of(question, sessions))),
        answer=answer.attempt.answer.answer if answer.attempt.answer else "",
        choices=BEHAVIOUR_LABELS if behaviour else BINARY_LABELS,
    )


def _evidence_lines(sessions: Iterable[EvidenceSession]) -> Iterable[str]:
    for session in sessions:
        for turn in session.turns:
            yield f"{turn.said_at[:16].replace('T', ' ')} {turn.speaker}: {turn.text}"
