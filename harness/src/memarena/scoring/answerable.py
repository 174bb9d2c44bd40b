"""Computes *answerable* by family: the share of questions whose prompt holds turns that suffice for the gold.

It is a memory's first figure, since it does not depend on how well the reader answers. By family it shows for which
kinds of questions a memory retrieves too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena.scoring.breakdowns import FAMILY_ORDER
from memarena.scoring.figures import AnswerableFamily, Score
from memarena.scoring.results import QuestionScore
from memarena.scoring.uncertainty.bootstrap import Draws, interval


def answerable_families(questions: Sequence[QuestionScore], draws: Draws | None) -> tuple[AnswerableFamily, ...]:
    """Compute *answerable* by family, in the order of the dimensions; without ``draws`` without intervals.

    A question counts if all of these hold:

    * It was asked, with whatever outcome.
    * Its gold has an answer and evidence (``retrievable``).
    * It is no control and no item of D6 that the owner asks (``outside_f1``), as in every score.
    """
    return tuple(_families(questions, draws))


def _families(questions: Sequence[QuestionScore], draws: Draws | None) -> Iterator[AnswerableFamily]:
    """Yield for each family the share of questions whose prompt held enough evidence.

    The share is a range if some questions were not measured, and n/a if the log cannot tell.
    """
    by_family: dict[str, list[QuestionScore]] = {}
    for question in questions:
        if question.retrievable and not question.outside_f1 and question.outcome is not None:
            by_family.setdefault(question.family, []).append(question)
    for family in FAMILY_ORDER:
        if family not in by_family:
            continue
        of_family = by_family[family]
        # Measured and still None: the backend does not report the sources of its items.
        if any(q.suffices is None and not q.unmeasured for q in of_family):
            yield AnswerableFamily(family=family, questions=len(of_family), score=Score())
            continue
        # From here on None means that the question was not measured.
        sufficient, unmeasured = sum(q.suffices is True for q in of_family), sum(q.suffices is None for q in of_family)
        low, high = sufficient / len(of_family), (sufficient + unmeasured) / len(of_family)
        score = Score(value=None if unmeasured else low, low=low, high=high)
        bounds = None
        if draws is not None and not unmeasured:
            bounds = interval(draws.shares(of_family, lambda q: q.suffices is True), len({q.ego for q in of_family}))
        yield AnswerableFamily(family=family, questions=len(of_family), score=score, interval=bounds)
