"""Rates of error of a judge on planted answers, by family and by the way in which answers were planted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memarena.judging.calibration.synthetic_answers import Planted
from memarena.judging.human.agreement import cohen_kappa
from memarena.judging.token_f1 import rule_by_token_f1
from memarena.judging.typed_value.question import day_of
from memarena.judging.value import is_judged, judge_answer

Ruler = Callable[[Planted], bool | None]
"""A judge on a planted answer: right, wrong, or None where it gave no usable reply."""


@dataclass(frozen=True)
class Rates:
    """How a judge does on a set of planted answers. Rates are shares; None without any such answer."""

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


def by_value_judge(planted: Planted) -> bool:
    """The value judge's word."""
    return judge_answer(planted.question, planted.evidence, planted.answer).correct


def by_token_f1(planted: Planted) -> bool:
    """What the fallback would say if the gold had no typed values."""
    question = planted.question
    gold = question.instance.gold
    if not is_judged(gold):
        raise ValueError(f"{question.instance.instance_id}: not an open question")
    today = day_of(question.asked_at)
    return rule_by_token_f1(question, gold, planted.answer, today).correct


def rates(planted: Sequence[Planted], said: Sequence[bool | None]) -> Rates:
    """Rates of one judge: ``said`` is its word on each planted answer."""
    pairs = [(p.right, word) for p, word in zip(planted, said, strict=True) if word is not None]
    return Rates(
        right=sum(right for right, _ in pairs),
        wrong=sum(not right for right, _ in pairs),
        false_rejects=sum(right and not word for right, word in pairs),
        false_accepts=sum(not right and word for right, word in pairs),
        unjudged=len(planted) - len(pairs),
    )


def grouped(
    planted: Sequence[Planted], said: Sequence[bool | None], key: Callable[[Planted], str]
) -> Mapping[str, Rates]:
    """Rates by a key, in the keys' order."""
    names = sorted({key(p) for p in planted})
    groups = {name: [(p, word) for p, word in zip(planted, said, strict=True) if key(p) == name] for name in names}
    return {name: rates([p for p, _ in pairs], [word for _, word in pairs]) for name, pairs in groups.items()}


def agreement(one: Sequence[bool | None], two: Sequence[bool | None]) -> float | None:
    """Cohen's κ of two judges over the answers that both judged; None if it is not defined."""
    pairs = [(a, b) for a, b in zip(one, two, strict=True) if a is not None and b is not None]
    return cohen_kappa([str(a) for a, _ in pairs], [str(b) for _, b in pairs]) if pairs else None
