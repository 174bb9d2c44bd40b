"""Computes the uncertainty of a run's figures: intervals over egos, and each kind of variance separately.

They show how far a figure would change with other people, other seeds or other verdicts on the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import numpy as np

from memarena.judging.judgment import by_disclosure, of_verdict
from memarena.judging.judgments import AttemptKey, Judgments
from memarena.log.records import Outcome, Verdict
from memarena.scoring import formulas
from memarena.scoring.figures import Score
from memarena.scoring.questions import outcome_of
from memarena.scoring.results import CellScores, QuestionScore
from memarena.scoring.tally import GROUPS, GROUPS_OF, Array, Tally, figures_of, tally
from memarena.scoring.uncertainty.bootstrap import clusters_of, interval, smallest_difference
from memarena.scoring.uncertainty_records import Interval, Variance

Figures = Mapping[str, Array]


def intervals(metrics: Mapping[str, Score], sums: Sequence[Tally], figures: Sequence[Figures]) -> dict[str, Interval]:
    """Compute intervals of the figures of a cell, or of several seeds averaged within every draw.

    Args:
        metrics: the figures by name; one that is n/a or only a range has no interval.
        sums: the sums per ego of each seed.
        figures: for each seed, the values of every figure by draw, of shape (draws,).

    Returns:
        by name of the figure; the interval of J is at each end at least as wide as Newcombe's over items.
    """
    by_metric: dict[str, Interval] = {}
    totals = sum(s.total for s in sums)
    for name in GROUPS_OF:
        if metrics[name].value is None:
            continue
        values = np.asarray(np.mean([f[name] for f in figures], axis=0))
        bounds = interval(values, clusters_of(np.asarray(totals), name))
        if bounds is None:
            continue
        by_metric[name] = _with_items(bounds, metrics, sums) if name == "J" else bounds
    return by_metric


def _with_items(drawn_j: Interval, metrics: Mapping[str, Score], sums: Sequence[Tally]) -> Interval:
    """Widen the interval of J so that each end is at least as far out as Newcombe's over the items of one seed."""
    privacy, utility = metrics["P"].value, metrics["U"].value
    deny, allow = (int(sums[0].total[:, GROUPS.index(side)].sum()) for side in ("DENY", "ALLOW"))
    if privacy is None or utility is None or not deny or not allow:
        return drawn_j
    low, high = formulas.j_interval(privacy, deny, utility, allow)
    wider = {"low": min(low, drawn_j.low), "high": max(high, drawn_j.high), "method": "bootstrap_egos_or_items"}
    return drawn_j.model_copy(update=wider)


# ------------------------------------------------------------------ kinds of variance


def variances(
    metrics: Mapping[str, Score],
    by_metric: Mapping[str, Interval],
    sums: Sequence[Tally],
    judge_sds: Mapping[str, float],
    judge_repeats: int,
) -> tuple[Variance, ...]:
    """Compute the kinds of spread of every figure that has a value, in its own unit (shares, 0 to 1).

    Args:
        metrics: the figures, with their standard deviation over seeds.
        by_metric: their intervals over egos.
        sums: the sums per ego of each seed.
        judge_sds: standard deviations between judge repeats, from :func:`judge_spread`.
        judge_repeats: the largest number of verdicts on one answer.
    """
    per_ego = [figures_of(s.right, s.total) for s in sums]
    out = []
    for name in GROUPS_OF:
        score, bounds = metrics[name], by_metric.get(name)
        if score.value is None:
            continue
        out.append(
            Variance(
                metric=name,
                answer_sd=score.sd,
                judge_sd=judge_sds.get(name),
                judge_repeats=judge_repeats,
                ego_sd=_ego_sd([f[name] for f in per_ego]),
                ego_se=bounds.se if bounds else None,
                smallest_difference=smallest_difference(math.sqrt(2) * bounds.se, bounds.clusters) if bounds else None,
            )
        )
    return tuple(out)


def _ego_sd(by_seed: Sequence[Array]) -> float | None:
    """Return the standard deviation between egos, each ego's figure averaged over seeds first; None below two egos."""
    means = np.mean(by_seed, axis=0)
    defined = means[~np.isnan(means)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else None


def judge_spread(
    cells: Sequence[CellScores],
    by_cell: Mapping[str, Sequence[QuestionScore]],
    attempts: Mapping[tuple[str, str], int],
    judgments: Judgments,
) -> dict[str, float]:
    """Compute the standard deviation of every figure between repeats of judging, mean over the cells (seeds).

    A *round* is the n-th verdict on every answer. A question with fewer verdicts keeps its scored outcome in the later
    rounds. ``attempts`` has by cell and instance the attempt that counts. Empty if nothing was repeated.
    """
    sds: dict[str, list[float]] = {}
    for cell in cells:
        questions = by_cell.get(cell.cell_id, ())
        keys = [(q.cell_id, q.instance_id, attempts.get((q.cell_id, q.instance_id), -1)) for q in questions]
        rounds = max((len(judgments.repeats.get(k, ())) for k in keys), default=0)
        if rounds < 2 or any(q.outcome is Outcome.INFRA_FAILED for q in questions):
            continue
        rows = {ego: row for row, ego in enumerate(sorted({q.ego for q in questions}))}
        by_round = [_round(questions, keys, judgments, n, rows) for n in range(rounds)]
        for name in GROUPS_OF:
            values = [float(figures[name][0]) for figures in by_round]
            if not any(math.isnan(v) for v in values):
                sds.setdefault(name, []).append(stdev(values))
    return {name: fmean(values) for name, values in sds.items()}


def _round(
    questions: Sequence[QuestionScore],
    keys: Sequence[AttemptKey],
    judgments: Judgments,
    number: int,
    rows: Mapping[str, int],
) -> Figures:
    """Compute the figures as if the verdicts of repeat ``number`` counted."""
    scores = []
    for question, key in zip(questions, keys, strict=True):
        verdicts = judgments.repeats.get(key, ())
        scores.append(_as(question, verdicts[number]) if number < len(verdicts) else question)
    sums = tally(scores, rows)
    return figures_of(sums.right.sum(axis=0, keepdims=True), sums.total.sum(axis=0, keepdims=True))


def _as(question: QuestionScore, verdict: Verdict) -> QuestionScore:
    if question.disclosure is not None and verdict.label is not None:
        disclosure = question.disclosure.model_copy(update={"label": verdict.label})
        return question.model_copy(update={"disclosure": disclosure, "outcome": outcome_of(by_disclosure(disclosure))})
    return question.model_copy(update={"outcome": outcome_of(of_verdict(verdict))})
