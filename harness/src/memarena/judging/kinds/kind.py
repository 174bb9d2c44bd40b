"""Defines the base class of kinds of questions, which holds everything that differs by kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Literal, TypeVar

from memarena_dataset.gold import GoldRecord

from memarena.judging.errors import JudgeError
from memarena.judging.judgment import Judgment
from memarena.log.records import EvidenceSession, JudgeTask, Question

G = TypeVar("G", bound=GoldRecord)


class Kind(ABC, Generic[G]):
    """A kind of question: how its answers are judged, and which part of its gold a judge with a model is shown."""

    decided_by: ClassVar[Literal["rules", "verdict", "label"]] = "rules"
    """Who decides if a judge with a model is chosen: still the rules, that judge's verdict, or its behaviour label."""
    has_rules: ClassVar[bool] = True
    """Whether answers can be judged without a model."""
    task: ClassVar[JudgeTask | None] = None
    """The task of a judge with a model; None: it is not asked."""
    prompt: ClassVar[str] = ""
    """File of the prompt; empty: that of the task."""
    shows_evidence: ClassVar[bool] = False
    """Whether a judge with a model sees the evidence."""

    @abstractmethod
    def judge(
        self, question: Question, gold: G, evidence: Sequence[EvidenceSession], answer: str, raw_output: str
    ) -> Judgment:
        """Judge an answer without a model. Pure.

        Args:
            question: whose gold is ``gold``.
            gold: the right answer.
            evidence: the question's evidence sessions, those that the log has.
            answer: as parsed from the reader's output; may be empty.
            raw_output: everything that the reader put out, in which D6 looks for leaks.
        """

    def key(self, gold: G) -> str:
        """Return the gold as it is shown to a judge with a model, or to a person who labels."""
        raise JudgeError(f"a judge with a model does not judge {_name(gold)} questions")

    def control(self, gold: G) -> str:
        """Return a plain right answer made from the gold alone: it shows whether a judge with a model works."""
        raise JudgeError(f"a judge with a model does not judge whether {_name(gold)} answers are right")

    def constant(self, gold: G) -> str:
        """Return an answer that a reader could try to give to every such question; empty if there is none."""
        return ""


def _name(gold: GoldRecord) -> str:
    return str(getattr(gold, "kind", type(gold).__name__))
