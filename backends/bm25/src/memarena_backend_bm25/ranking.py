"""Ranks documents by their scores: picks the best, fuses several rankings, and weighs in recency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memarena_backend_bm25.okapi import Floats, Ints

RRF_CONSTANT = 60
"""The k in 1 / (k + rank), summed over rankings: Cormack, Clarke, Buettcher, Reciprocal Rank Fusion (SIGIR 2009)."""


def best(scores: Floats, count: int) -> Ints:
    """Return the indices of the ``count`` best documents, by descending score, then ascending index.

    Returns all indices if there are fewer documents. Scores may be zero or negative: as in the package rank-bm25,
    documents without any word of the query fill up the ranking.
    """
    count = min(count, len(scores))
    if count == 0:
        return np.empty(0, dtype=np.intp)
    # Most documents have no word of the query. If at least `count` have one, the best are among these.
    eligible = scores[scores > 0]
    if len(eligible) < count:
        eligible = scores.copy()
    # Array methods have less overhead than numpy's functions of the same names, and every search pays for it.
    eligible.partition(len(eligible) - count)
    (candidates,) = (scores >= eligible[len(eligible) - count]).nonzero()
    # A stable sort puts the earliest of equal scores first.
    order: Ints = candidates[(-scores[candidates]).argsort(kind="stable")][:count]
    return order


def fused(rankings: Sequence[Floats], depth: int) -> Floats:
    """Return the reciprocal rank fusion of several scorings of the same documents; shape (documents,).

    Only the ``depth`` best documents of each scoring count; a document that is among none of these scores 0.
    """
    total = np.zeros_like(rankings[0])
    for scores in rankings:
        chosen = best(scores, depth)
        total[chosen] += 1.0 / (RRF_CONSTANT + 1 + np.arange(len(chosen)))
    return total


def with_recency(scores: Floats, ages_s: Floats, weight: float) -> Floats:
    """Return the scores scaled to 0…1, plus ``weight`` times each document's recency: 1 for age 0, 0 for the oldest.

    ``ages_s`` are seconds before the question, same shape as the scores; a document after the question has age 0.
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
