"""*Answerable* by family: the share of questions whose prompt holds turns that suffice for the gold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena.scoring.breakdowns import FAMILY_ORDER
from memarena.scoring.figures import AnswerableFamily, Score
from memarena.scoring.results import QuestionScore
from memarena.scoring.uncertainty.bootstrap import Draws, interval


def answerable_families(questions: Sequence[QuestionScore], draws: Draws | None) -> tuple[AnswerableFamily, ...]:
    """By family in the order of the dimensions, over the questions that were asked and have something to retrieve.

    Controls and the owner's own items of D6 are left out, as from every score. ``draws``: None leaves intervals out.
    """
    return tuple(_families(questions, draws))


def _families(questions: Sequence[QuestionScore], draws: Draws | None) -> Iterator[AnswerableFamily]:
    by_family: dict[str, list[QuestionScore]] = {}
    for question in questions:
        if question.retrievable and not question.outside_f1 and question.outcome is not None:
            by_family.setdefault(question.family, []).append(question)
    for family in FAMILY_ORDER:
        if family not in by_family:
            continue
        own = by_family[family]
        if any(q.suffices is None and not q.unmeasured for q in own):
            yield AnswerableFamily(family=family, questions=len(own), score=Score())
            continue
        sufficient, unmeasured = sum(q.suffices is True for q in own), sum(q.suffices is None for q in own)
        low, high = sufficient / len(own), (sufficient + unmeasured) / len(own)
        score = Score(value=None if unmeasured else low, low=low, high=high)
        bounds = None
        if draws is not None and not unmeasured:
            bounds = interval(draws.shares(own, lambda q: q.suffices is True), len({q.ego for q in own}))
        yield AnswerableFamily(family=family, questions=len(own), score=score, interval=bounds)
