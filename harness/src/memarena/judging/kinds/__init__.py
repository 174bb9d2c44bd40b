"""Maps each kind of question to its class: how an answer is judged, and what a model is shown of the gold.

A new kind is a file with its class and a line of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memarena.judging.judgment import Judgment
from memarena.judging.kinds.abstain import Abstain
from memarena.judging.kinds.anaphora import Anaphora
from memarena.judging.kinds.cloze import Cloze
from memarena.judging.kinds.conflict import Conflict
from memarena.judging.kinds.counterfactual import Counterfactual
from memarena.judging.kinds.kind import Kind
from memarena.judging.kinds.permission import Permission
from memarena.judging.kinds.rubric import Rubric
from memarena.judging.kinds.text import Text
from memarena.log.records import EvidenceSession, Question

KINDS: Mapping[str, Kind[Any]] = {
    "cloze": Cloze(),
    "text": Text(),
    "rubric": Rubric(),
    "counterfactual": Counterfactual(),
    "conflict": Conflict(),
    "anaphora": Anaphora(),
    "abstain": Abstain(),
    "permission": Permission(),
}
"""Kinds by ``kind`` of the gold."""


def kind_of(question: Question) -> Kind[Any]:
    """Return the kind of a question."""
    return KINDS[question.instance.gold.kind]


def judge(question: Question, evidence: Sequence[EvidenceSession], answer: str, raw_output: str) -> Judgment:
    """Judge an answer without a model. Pure: the same input gives the same judgment.

    Args:
        question: with its gold.
        evidence: the question's evidence sessions; people and words in them are known.
        answer: the parsed answer.
        raw_output: everything that the reader put out, in which D6 looks for leaks.

    Raises:
        JudgeError: the gold is a rubric, which needs a model.
    """
    return kind_of(question).judge(question, question.instance.gold, evidence, answer, raw_output)
