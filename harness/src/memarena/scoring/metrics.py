"""Computes the figures of one cell from the outcomes of its questions (:mod:`memarena.scoring.tally` has the formulas).

A figure is a range if some questions are unmeasured (:data:`~memarena.log.records.UNMEASURED`): its lower end counts
all of them as wrong, its upper end as right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from memarena.log.records import UNMEASURED, Outcome
from memarena.scoring import formulas
from memarena.scoring.figures import Counts, Score
from memarena.scoring.results import QuestionScore
from memarena.scoring.tally import DIMENSIONS, Right, Tally, figures_of, tally


def count(questions: Sequence[QuestionScore]) -> Counts:
    """Count the questions by outcome."""
    return counts_of(Counter(q.outcome for q in questions))


def counts_of(ended: Mapping[Outcome | None, int]) -> Counts:
    """Return the counts of a row from the number of questions by outcome; the key None: not asked yet."""
    own = {outcome.value: ended.get(outcome, 0) for outcome in Outcome}
    return Counts(planned=sum(ended.values()), **own)


def cell_metrics(
    questions: Sequence[QuestionScore], chance: Mapping[str, float | None], sums: Tally | None = None
) -> dict[str, Score]:
    """Compute every figure of a cell, by name.

    Args:
        questions: those of the cell.
        chance: the score of the best baseline by dimension. If it is None, the figure corrected for chance, such as
            ``D1c``, is n/a.
        sums: the questions' sums per ego, if they exist already.
    """
    exact = not any(q.outcome in UNMEASURED for q in questions)
    low = figures(questions, lambda q: q.correct) if sums is None else _figures(sums)
    high = low if exact else figures(questions, lambda q: q.outcome is Outcome.CORRECT or q.outcome in UNMEASURED)
    low = low | _correct_for_chance(low, chance)
    high = high | _correct_for_chance(high, chance)
    return {name: Score(value=low[name] if exact else None, low=low[name], high=high[name]) for name in low}


def figures(questions: Sequence[QuestionScore], right: Right) -> dict[str, float | None]:
    """Compute every figure over the questions asked; ``right`` decides whether one counts as right. None: n/a."""
    return _figures(tally(questions, dict.fromkeys((q.ego for q in questions), 0), right))


def _figures(sums: Tally) -> dict[str, float | None]:
    """Compute every figure over all egos together, by name; None: n/a."""
    drawn = figures_of(sums.right.sum(axis=0, keepdims=True), sums.total.sum(axis=0, keepdims=True))
    values = {name: float(value[0]) for name, value in drawn.items()}
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _correct_for_chance(
    values: Mapping[str, float | None], chance: Mapping[str, float | None]
) -> dict[str, float | None]:
    corrected: dict[str, float | None] = {}
    for dimension in DIMENSIONS:
        score, by_chance = values[dimension], chance.get(dimension)
        both_known = score is not None and by_chance is not None
        corrected[f"{dimension}c"] = formulas.chance_corrected(score or 0.0, by_chance or 0.0) if both_known else None
    return corrected
