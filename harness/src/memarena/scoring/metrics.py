"""From the outcomes of questions to the figures of one cell, a value or a range (:mod:`memarena.scoring.tally`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from memarena.log.records import UNMEASURED, Outcome
from memarena.scoring import formulas
from memarena.scoring.results import Counts, QuestionScore, Score
from memarena.scoring.tally import DIMENSIONS, Right, figures_of, tally


def count(questions: Sequence[QuestionScore]) -> Counts:
    """How the questions ended."""
    return counts_of(Counter(q.outcome for q in questions))


def counts_of(ended: Mapping[Outcome | None, int]) -> Counts:
    """How questions ended, from how often each outcome came up; None: not asked yet."""
    own = {outcome.value: ended.get(outcome, 0) for outcome in Outcome}
    return Counts(planned=sum(ended.values()), **own)


def cell_metrics(questions: Sequence[QuestionScore], chance: Mapping[str, float | None]) -> dict[str, Score]:
    """Every figure of a cell. ``chance`` holds the best baseline by dimension; without one nothing is corrected."""
    exact = not any(q.outcome in UNMEASURED for q in questions)
    low = figures(questions, lambda q: q.outcome is Outcome.CORRECT)
    high = low if exact else figures(questions, lambda q: q.outcome is Outcome.CORRECT or q.outcome in UNMEASURED)
    low = low | _corrected(low, chance)
    high = high | _corrected(high, chance)
    return {name: Score(value=low[name] if exact else None, low=low[name], high=high[name]) for name in low}


def figures(questions: Sequence[QuestionScore], right: Right) -> dict[str, float | None]:
    """Every figure over the questions asked, with ``right`` deciding what counts as right; None: n/a."""
    sums = tally(questions, dict.fromkeys((q.ego for q in questions), 0), right)
    values = {name: float(value[0]) for name, value in figures_of(sums.right, sums.asked).items()}
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _corrected(values: Mapping[str, float | None], chance: Mapping[str, float | None]) -> dict[str, float | None]:
    corrected: dict[str, float | None] = {}
    for dimension in DIMENSIONS:
        score, by_chance = values[dimension], chance.get(dimension)
        both_known = score is not None and by_chance is not None
        corrected[f"{dimension}c"] = formulas.chance_corrected(score or 0.0, by_chance or 0.0) if both_known else None
    return corrected
