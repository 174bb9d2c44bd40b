"""Corrects the share right over text golds, judged without a model, for the judge's known error rates.

Rules that compare texts call some right answers wrong and some wrong ones right. A report shows next to the share as
judged what the true share may be. The rates were measured on answers that people labelled (docs/judging.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memarena.judging.error_rates import ErrorCounts, text_error_counts
from memarena.scoring.figures import JudgeError
from memarena.scoring.formulas import wilson
from memarena.scoring.results import QuestionScore
from memarena.scoring.uncertainty.bootstrap import Draws, interval
from memarena.scoring.uncertainty_records import Interval


@dataclass(frozen=True)
class Estimate:
    """A share with the ends of its 95% interval; all three between 0 and 1."""

    value: float
    low: float
    high: float


def exactly(value: float) -> Estimate:
    """Return a share that is known exactly, as an interval without width."""
    return Estimate(value, value, value)


def estimated(hits: int, n: int) -> Estimate:
    """Return the share of hits among n, with Wilson's interval."""
    return Estimate(hits / n, *wilson(hits / n, n))


def corrected_share(observed: Estimate, false_accepts: Estimate, false_rejects: Estimate) -> Estimate:
    """Estimate the true share right from an observed one: (p - fp) / (1 - fn - fp), clipped to 0..1.

    The estimator is that of Rogan and Gladen (1978, "Estimating prevalence from the results of a screening test").
    They give its variance by the delta method, as a sum over the three shares. Here each end of the interval combines
    the distances by which the ends of the three intervals move the result, as the root of the sum of their squares
    (Newcombe 1998; Zou and Donner 2008): the same to first order, and right for skewed intervals near 0 and 1.

    A share that the rates cannot give (below fp or above 1 - fn) is corrected to 0 or 1. Its interval is then one-sided
    and at least as wide as the observed share's on that side, so that 0 of n still has an interval.

    Args:
        observed: share called right, with its sampling interval.
        false_accepts: share of wrong answers that are called right (fp).
        false_rejects: share of right answers that are called wrong (fn).

    Raises:
        ValueError: the judge may be no better than chance (fp + fn of 1 or more at their upper ends).
    """
    if false_accepts.high + false_rejects.high >= 1:
        raise ValueError("error rates of a judge: expected a sum below 1 at the upper ends of their intervals")
    p, fp, fn = observed, false_accepts, false_rejects
    value = _rogan_gladen(p.value, fp.value, fn.value)
    moved = [
        [_rogan_gladen(end, fp.value, fn.value) - value for end in (p.low, p.high)],
        [_rogan_gladen(p.value, end, fn.value) - value for end in (fp.low, fp.high)],
        [_rogan_gladen(p.value, fp.value, end) - value for end in (fn.low, fn.high)],
    ]
    below = math.hypot(*(min(0.0, *ends) for ends in moved))
    above = math.hypot(*(max(0.0, *ends) for ends in moved))
    low = min(value - below, 1 - (p.value - p.low))
    high = max(value + above, p.high - p.value)
    return Estimate(*(min(1.0, max(0.0, share)) for share in (value, low, high)))


def _rogan_gladen(observed: float, false_accepts: float, false_rejects: float) -> float:
    return (observed - false_accepts) / (1 - false_rejects - false_accepts)


def text_judge_error(
    questions: Sequence[QuestionScore], draws: Draws | None, counts: ErrorCounts | None = None
) -> JudgeError | None:
    """Return the share right over text golds as judged and as corrected; None if no text gold decided.

    Args:
        questions: those of the row's headline cells, judged by the rules.
        draws: of egos. If None, for a single ego, or if all egos have the same share, the interval is Wilson's over
            the questions.
        counts: the judge's errors; by default those that were measured.
    """
    judged = [q for q in questions if q.route == "text"]
    if not judged:
        return None
    counts = counts or text_error_counts()
    right = sum(q.correct for q in judged)
    question_count = len({q.instance_id for q in judged})
    over_egos = _over_egos(judged, draws)
    share = right / len(judged)
    # Seeds ask the same questions, so n is the number of questions and not of answers.
    low, high = (over_egos.low, over_egos.high) if over_egos else wilson(share, question_count)
    observed = Estimate(share, max(0.0, low), min(1.0, high))
    false_accepts = estimated(counts.wrong_called_right, counts.wrong)
    false_rejects = estimated(counts.right_called_wrong, counts.right)
    corrected = corrected_share(observed, false_accepts, false_rejects)
    return JudgeError(
        answers=len(judged),
        questions=question_count,
        observed=share,
        corrected=corrected.value,
        low=corrected.low,
        high=corrected.high,
        clusters=over_egos.clusters if over_egos else None,
        fits=false_accepts.low <= observed.high and observed.low <= 1 - false_rejects.low,
        rates=counts,
    )


def _over_egos(judged: Sequence[QuestionScore], draws: Draws | None) -> Interval | None:
    """Return the interval of the share right over draws of egos; None without one, or if its standard error is 0."""
    if draws is None:
        return None
    interval_of = interval(draws.shares(judged, lambda q: q.correct), len({q.ego for q in judged}))
    return interval_of if interval_of is not None and interval_of.se > 0 else None
