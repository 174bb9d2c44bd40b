"""Fits a small multinomial logistic regression over sets of binary features.

It is the classifier of ``guessing.py``, ``permission_shortcuts.py`` and ``specific_turns.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

PENALTY = 0.3
"""L2 penalty on the weights, in units of one example's loss."""

Matrix = npt.NDArray[np.float64]


class LogisticModel:
    """Class probabilities from binary features, each row scaled to length 1. Classes are numbers from 0."""

    def __init__(self, rows: Sequence[frozenset[str]], classes: Sequence[int], count: int) -> None:
        self._numbers = {name: index for index, name in enumerate(sorted({name for row in rows for name in row}))}
        examples = self._matrix(rows)
        targets = np.eye(count)[np.array(classes)]

        def loss(flat: Matrix) -> tuple[float, Matrix]:
            weights = flat.reshape(-1, count)
            chances = _softmax(examples @ weights)
            value = -float(np.sum(targets * np.log(chances + 1e-12))) + PENALTY * float(np.sum(weights[:-1] ** 2))
            slope = examples.T @ (chances - targets)
            slope[:-1] += 2 * PENALTY * weights[:-1]
            return value, np.asarray(slope).ravel()

        start = np.zeros((len(self._numbers) + 1) * count)
        optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
        self._weights = np.asarray(optimum.x).reshape(-1, count)

    def _matrix(self, rows: Iterable[frozenset[str]]) -> csr_matrix:
        """Return a row for each set of features, without unknown ones; the last column is the constant, 1."""
        values, columns, ends = [], [], [0]
        for row in rows:
            known = sorted(self._numbers[name] for name in row if name in self._numbers)
            columns += [*known, len(self._numbers)]
            values += [1 / np.sqrt(len(known) or 1)] * len(known) + [1.0]
            ends.append(len(columns))
        return csr_matrix((values, columns, ends), shape=(len(ends) - 1, len(self._numbers) + 1))

    def scores(self, rows: Sequence[frozenset[str]]) -> list[float]:
        """Return the log odds of the second of two classes, for each row."""
        log_odds = np.asarray(self._matrix(rows) @ self._weights)
        return [float(score) for score in log_odds[:, 1] - log_odds[:, 0]]

    def best(self, row: frozenset[str]) -> int:
        """Return the index of the likeliest class."""
        return int(np.argmax(self._matrix([row]) @ self._weights))


def _softmax(scores: Matrix) -> Matrix:
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
