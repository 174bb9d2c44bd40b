"""Trains logistic regression over sparse features, and rounds its weights to int16."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from memarena.judging.linear_model import LARGEST_WEIGHT, LinearModel
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from judge_training.task import Example, Settings


def train(
    examples: Sequence[Example], settings: Settings, leave_out: Callable[[str], bool] | None = None
) -> LinearModel:
    """Train a model; both labels have the same total weight. Deterministic: the same examples give the same model.

    Raises ValueError if one of the labels has no example.
    """
    if len({example.label for example in examples}) != 2:
        raise ValueError("expected examples of both labels")
    counts = Counter(feature for example in examples for feature in example.features)
    names = sorted(f for f, n in counts.items() if n >= settings.least_texts and not (leave_out and leave_out(f)))
    columns = {name: column for column, name in enumerate(names)}
    labels = np.array([example.label for example in examples])
    weights = np.array([example.weight for example in examples])
    for label in (False, True):
        weights[labels == label] *= len(examples) / 2 / weights[labels == label].sum()
    learner = LogisticRegression(C=settings.inverse_penalty, max_iter=1000, tol=1e-5)
    learner.fit(_matrix((e.features for e in examples), columns), labels, sample_weight=weights)
    learned = dict(zip(names, learner.coef_[0].tolist(), strict=True))
    return _round_weights(learned, float(learner.intercept_[0]) - settings.threshold, settings.least_weight)


def _matrix(rows: Iterable[Iterable[str]], column_of: Mapping[str, int]) -> csr_matrix:
    columns: list[int] = []
    ends = [0]
    for row in rows:
        columns += sorted(column_of[feature] for feature in row if feature in column_of)
        ends.append(len(columns))
    return csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(ends) - 1, len(column_of)))


def _round_weights(learned: Mapping[str, float], bias: float, least: float) -> LinearModel:
    """Return the weights as int16: the largest uses the whole range, but one logit is at most 2^10 units."""
    heaviest = max(map(abs, learned.values()), default=1.0)
    scale = float(min(1024, int(LARGEST_WEIGHT / heaviest)))
    rounded = {name: round(w * scale) for name, w in learned.items() if abs(w) >= least}
    return LinearModel({name: w for name, w in rounded.items() if w}, round(bias * scale), scale)
