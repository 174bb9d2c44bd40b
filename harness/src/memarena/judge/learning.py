"""Learns the weights by which wording is seen to give a value: ``python -m memarena.judge.learning`` writes them anew.

The texts are the phrasings that the judge was tuned with or has been measured with (``planted/``) and more of their
kind (``training/``), with signs for what they are filled with. What does not name the value is left out: rules see
that. A logistic regression with a ridge penalty over the features of :mod:`memarena.judge.value_weighing`. No chance
enters: texts and the numerical method are fixed, and weights are rounded.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from memarena.judge.value_markers import without_markers
from memarena.judge.value_weighing import WEIGHTS, Shape, features
from memarena.judge.value_wording import (
    DAY,
    OTHER_VERSION,
    PREMISE,
    RIVAL,
    SPEAKER,
    UNHEARD,
    VALUE,
    raw_words,
    wording,
)
from memarena.text.learning import wordings
from memarena.text.words import stem

_FILES = (
    "planted/development.v7.toml",
    "training/wordings.v1.toml",
    "training/pairs.v1.toml",
    "training/verbose.v1.toml",
)
_SIGNS = {"v": VALUE, "c": OTHER_VERSION, "a": PREMISE, "x": UNHEARD, "y": UNHEARD, "who": SPEAKER, "day": DAY}
_PENALTY = 5.0
"""Of the sum of the squared weights, beside a loss in which every phrasing counts once. With four times as much, and
with a fifth, errors on sets that were left out change little."""
_LEAST_TEXTS = 3
"""A word or a feature that fewer phrasings have is not learned."""
_LEAST_WEIGHT = 0.01
_DIGITS = 3

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Text:
    """A phrasing. ``source`` is the pattern that it is a wording of; all wordings of one weigh as much as its root."""

    said: tuple[str, ...]
    right: bool
    shape: Shape
    source: str
    weight: float


def texts() -> list[Text]:
    """Every training text once, in an order that does not depend on which file has it."""
    folder = files("memarena.judge")
    tables = [tomllib.loads(folder.joinpath(name).read_text(encoding="utf-8")) for name in _FILES]
    every = (t for table in tables for side in ("right", "wrong") for t in _of_side(table[side], side == "right"))
    once = {(text.right, text.shape, text.source, text.said): text for text in every}
    return [once[key] for key in sorted(once)]


def _of_side(shapes: Mapping[str, Mapping[str, Sequence[str]]], right: bool) -> Iterator[Text]:
    for shape, kinds in shapes.items():
        for pattern in (p for patterns in kinds.values() for p in patterns):
            told = [w for w in wordings(pattern) if "{v}" in w and (shape != "conflict" or "{c}" in w)]
            for one in told:
                # A rival is seen as one where the gold's type has mentions of its own, else as a thing unheard of.
                ways = (RIVAL, UNHEARD) if "{o}" in one or "{p}" in one else (RIVAL,)
                weight = len(told) ** -0.5 / len(ways)
                for rival in ways:
                    said = raw_words(without_markers(_signed(one, rival)))
                    yield Text(tuple(said), right, cast(Shape, shape), pattern, weight)


def _signed(phrasing: str, rival: str) -> str:
    for name, sign in {**_SIGNS, "o": rival, "p": rival}.items():
        phrasing = phrasing.replace("{" + name + "}", f" {sign} ")
    return phrasing.replace("{q}", "")


def learn(rows: Sequence[Text]) -> dict[str, Any]:
    """The vocabulary and the weights, as :func:`memarena.judge.value_weighing.stored` reads them."""
    having = Counter(w for said in _words_by_source(rows) for w in said)
    vocabulary = frozenset(w for w, n in having.items() if n >= _LEAST_TEXTS and w[0].isalpha() and w[:2] != "zq")
    seen = [features(wording(row.said, vocabulary), row.shape) for row in rows]
    count = Counter(f for found in seen for f in found)
    names = sorted(f for f, n in count.items() if n >= _LEAST_TEXTS)
    index = {name: i for i, name in enumerate(names)}
    cells = [(i, index[f]) for i, found in enumerate(seen) for f in found if f in index]
    at, of = np.array(cells).T
    matrix = csr_matrix((np.ones(len(cells)), (at, of)), shape=(len(rows), len(names)))
    point = _least(matrix, np.where([r.right for r in rows], 1.0, -1.0), np.array([r.weight for r in rows]))
    found = {name: round(float(w), _DIGITS) for name, w in zip(names, point, strict=True)}
    return {
        "vocabulary": sorted(vocabulary),
        "features": {name: w for name, w in found.items() if abs(w) >= _LEAST_WEIGHT},
    }


def _words_by_source(rows: Sequence[Text]) -> list[set[str]]:
    """The words of each pattern and their stems, whatever its wordings."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row.source, set()).update(row.said, map(stem, row.said))
    return list(found.values())


def _least(matrix: csr_matrix, sign: Array, weight: Array) -> Array:
    turned = matrix.T.tocsr()

    def loss(point: Array) -> tuple[float, Array]:
        margin = sign * (matrix @ point)
        value = float(weight @ np.logaddexp(0, -margin)) + _PENALTY / 2 * float(point @ point)
        return value, turned @ (-sign * weight * expit(-margin)) + _PENALTY * point

    options = {"maxiter": 1000, "ftol": 1e-9}
    best: Array = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B", options=options).x
    return best


def dump(learned: Mapping[str, Any]) -> str:
    """The file of the weights, one feature a line."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(w)}" for name, w in learned["features"].items())
    return f'{{\n"vocabulary": {json.dumps(learned["vocabulary"])},\n"features": {{\n{lines}\n}}\n}}\n'


if __name__ == "__main__":
    target = Path(str(files("memarena.text") / "lexicons" / WEIGHTS))
    target.write_text(dump(learn(texts())), encoding="utf-8")
