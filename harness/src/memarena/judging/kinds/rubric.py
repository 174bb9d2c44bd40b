"""Judges questions without a fixed answer: a right answer fulfils every sentence of a rubric."""

from __future__ import annotations

from collections.abc import Sequence

from memarena_dataset.gold import RubricGold

from memarena.judging.errors import JudgeError
from memarena.judging.judgment import Code, Judgment, wrong
from memarena.judging.kinds.kind import Kind
from memarena.log.records import EvidenceSession, Question


class Rubric(Kind[RubricGold]):
    """A rubric needs a judge with a model: without one, only an empty answer can be judged."""

    decided_by = "verdict"
    has_rules = False
    task = "rubric"

    def judge(
        self, question: Question, gold: RubricGold, evidence: Sequence[EvidenceSession], answer: str, raw_output: str
    ) -> Judgment:
        """Judge an empty answer wrong. Raises JudgeError for any other answer."""
        if answer.strip():
            raise JudgeError(f"{question.instance.instance_id}: a rubric needs a judge with a model")
        return wrong("value", Code.NO_ANSWER)

    def key(self, gold: RubricGold) -> str:
        """Return the rubric, one sentence a line, numbered from 1."""
        return numbered(gold.rubric)


def numbered(sentences: Sequence[str]) -> str:
    """Return a rubric as a judge is shown it: one sentence a line, numbered from 1."""
    return "\n".join(f"{number}. {' '.join(sentence.split())}" for number, sentence in enumerate(sentences, 1))
