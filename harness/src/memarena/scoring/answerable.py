"""Computes *answerable* by family: the share of questions whose prompt holds turns that suffice for the gold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena.scoring.breakdowns import FAMILY_ORDER
from memarena.scoring.figures import AnswerableFamily, Score
from memarena.scoring.results import QuestionScore
from memarena.scoring.uncertainty.bootstrap import Draws, interval


def answerable_families(questions: Sequence[QuestionScore], draws: Draws | None) -> tuple[AnswerableFamily, ...]:
    """Compute *answerable* by family, in the order of the dimensions, over questions that were asked and have evidence.

    Controls and the owner's own items of D6 are left out, as from every score. Without ``draws`` there are no
    intervals.
    """
    return tuple(_families(questions, draws))


def _families(questions: Sequence[QuestionScore], draws: Draws | None) -> Iterator[AnswerableFamily]:
    """Yield for each family the share of questions whose prompt held enough evidence.

    The share is a range if some questions were not measured, and empty if the log cannot tell.
    """
    by_family: dict[str, list[QuestionScore]] = {}
    for question in questions:
        if question.retrievable and not question.outside_f1 and question.outcome is not None:
            by_family.setdefault(question.family, []).append(question)
    for family in FAMILY_ORDER:
        if family not in by_family:
            continue
        of_family = by_family[family]
        if any(q.suffices is None and not q.unmeasured for q in of_family):
            yield AnswerableFamily(family=family, questions=len(of_family), score=Score())
            continue
        sufficient, unmeasured = sum(q.suffices is True for q in of_family), sum(q.suffices is None for q in of_family)
        low, high = sufficient / len(of_family), (sufficient + unmeasured) / len(of_family)
        score = Score(value=None if unmeasured else low, low=low, high=high)
        bounds = None
        if draws is not None and not unmeasured:
            bounds = interval(draws.shares(of_family, lambda q: q.suffices is True), len({q.ego for q in of_family}))
        yield AnswerableFamily(family=family, questions=len(of_family), score=score, interval=bounds)
