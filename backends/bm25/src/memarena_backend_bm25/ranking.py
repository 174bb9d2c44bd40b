"""From scores to an order: the best documents, two rankings joined, recent things preferred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memarena_backend_bm25.okapi import Floats, Ints

RRF_CONSTANT = 60
"""Cormack, Clarke, Buettcher: Reciprocal Rank Fusion (SIGIR 2009)."""


def best(scores: Floats, count: int) -> Ints:
    """Numbers of the ``count`` best documents, score descending, then number ascending; all if there are fewer.

    The score may be zero or negative: the ranking is that of the whole corpus, and a document without any word of the
    query still fills it up, as in the package rank-bm25.
    """
    count = min(count, len(scores))
    if count == 0:
        return np.empty(0, dtype=np.intp)
    # Most documents have no word of the query: where enough have one, the best are among them.
    among = scores[scores > 0]
    if len(among) < count:
        among = scores.copy()
    # Methods, for numpy's functions of the same names do more in Python, which every search pays for.
    among.partition(len(among) - count)
    (candidates,) = (scores >= among[len(among) - count]).nonzero()
    # Stable, so that of equal scores the earliest win.
    order: Ints = candidates[(-scores[candidates]).argsort(kind="stable")][:count]
    return order


def fused(rankings: Sequence[Floats], depth: int) -> Floats:
    """Reciprocal rank fusion of several scorings of the same documents, each by its ``depth`` best; shape as theirs.

    A document that is among the best of none scores 0.
    """
    total = np.zeros_like(rankings[0])
    for scores in rankings:
        chosen = best(scores, depth)
        total[chosen] += 1.0 / (RRF_CONSTANT + 1 + np.arange(len(chosen)))
    return total


def with_recency(scores: Floats, ages_s: Floats, weight: float) -> Floats:
    """Scores brought to 0…1, plus ``weight`` times how recent each document is: 1 for age 0, 0 for the oldest.

    ``ages_s`` are seconds before the question, shape as the scores; what lies after the question counts as age 0.
    """
    ages = np.maximum(ages_s, 0.0)
    oldest = float(ages.max(initial=0.0))
    recent = 1.0 - ages / oldest if oldest > 0 else np.ones_like(ages)
    return _to_unit(scores) + weight * recent


def _to_unit(scores: Floats) -> Floats:
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
