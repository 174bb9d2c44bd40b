"""What there is to know of a kind of question, in one place."""

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
    """A kind of question: how its answers are judged, and what of its gold a judge with a model is shown."""

    decided_by: ClassVar[Literal["rules", "verdict", "label"]] = "rules"
    """What decides when another judge is chosen: still the rules, its verdict, or its label of the behaviour."""
    has_rules: ClassVar[bool] = True
    """Whether answers can be judged without a model."""
    task: ClassVar[JudgeTask | None] = None
    """What a judge with a model is asked; None: nothing."""
    prompt: ClassVar[str] = ""
    """File of its own prompt; empty: that of its task."""
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
            evidence: the sessions that it follows from, as far as the log has them.
            answer: as parsed from the reader's output; may be empty.
            raw_output: everything that the reader put out, in which D6 looks for leaks.
        """

    def key(self, gold: G) -> str:
        """The gold as a judge with a model, or a person who labels, is shown it."""
        raise JudgeError(f"a judge with a model does not judge {_name(gold)} questions")

    def control(self, gold: G) -> str:
        """A plain right answer made of the gold alone, which shows whether a judge with a model works."""
        raise JudgeError(f"a judge with a model does not judge whether {_name(gold)} answers are right")

    def constant(self, gold: G) -> str:
        """What a reader might try that gives every question the same answer; empty: nothing."""
        return ""


def _name(gold: GoldRecord) -> str:
    return str(getattr(gold, "kind", type(gold).__name__))
