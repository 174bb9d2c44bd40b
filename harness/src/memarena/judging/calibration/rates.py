"""Computes error rates of a judge on synthetic answers, by family and by the way in which the answers were made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memarena.judging.calibration.synthetic_answers import SyntheticAnswer
from memarena.judging.human.agreement import cohen_kappa
from memarena.judging.kinds import judge, kind_of
from memarena.judging.kinds.open_answer import OpenAnswer

Ruler = Callable[[SyntheticAnswer], bool | None]
"""A judge of synthetic answers: returns whether an answer is right; None without a usable reply."""


@dataclass(frozen=True)
class Rates:
    """A judge's errors on a set of synthetic answers. Rates are shares; None if there are no such answers."""

    right: int
    wrong: int
    false_rejects: int
    """Right answers that were called wrong."""
    false_accepts: int
    """Wrong answers that were called right."""
    unjudged: int = 0
    """Answers without a usable reply; they count in no rate."""

    @property
    def false_reject_rate(self) -> float | None:
        """Share of the right answers."""
        return self.false_rejects / self.right if self.right else None

    @property
    def false_accept_rate(self) -> float | None:
        """Share of the wrong answers."""
        return self.false_accepts / self.wrong if self.wrong else None


def by_value_judge(answer: SyntheticAnswer) -> bool:
    """Whether the judge without a model calls an answer right, whatever the kind of question."""
    return judge(answer.question, answer.evidence, answer.answer, answer.answer).correct


def by_text_judge(answer: SyntheticAnswer) -> bool | None:
    """Whether the answer would be right if the gold were only text; None if the question is not an open one."""
    question = answer.question
    kind = kind_of(question)
    if not isinstance(kind, OpenAnswer):
        return None
    return kind.judge_text(question.question_text, question.instance.gold, answer.answer).correct


def rates(synthetic: Sequence[SyntheticAnswer], verdicts: Sequence[bool | None]) -> Rates:
    """Compute the rates of one judge; ``verdicts`` are in the order of the answers, None without a usable reply."""
    pairs = [(p.right, verdict) for p, verdict in zip(synthetic, verdicts, strict=True) if verdict is not None]
    return Rates(
        right=sum(right for right, _ in pairs),
        wrong=sum(not right for right, _ in pairs),
        false_rejects=sum(right and not verdict for right, verdict in pairs),
        false_accepts=sum(not right and verdict for right, verdict in pairs),
        unjudged=len(synthetic) - len(pairs),
    )


def grouped(
    synthetic: Sequence[SyntheticAnswer], verdicts: Sequence[bool | None], key: Callable[[SyntheticAnswer], str]
) -> Mapping[str, Rates]:
    """Compute the rates by a key of the answers, sorted by key."""
    names = sorted({key(p) for p in synthetic})
    groups = {
        name: [(p, verdict) for p, verdict in zip(synthetic, verdicts, strict=True) if key(p) == name] for name in names
    }
    return {name: rates([p for p, _ in pairs], [verdict for _, verdict in pairs]) for name, pairs in groups.items()}


def agreement(first: Sequence[bool | None], second: Sequence[bool | None]) -> float | None:
    """Return Cohen's κ of two judges over the answers that both judged; None if it is not defined."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    return cohen_kappa([str(a) for a, _ in pairs], [str(b) for _, b in pairs]) if pairs else None
