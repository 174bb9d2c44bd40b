"""Learns the weights by which an answer is seen to decline: ``python -m memarena.text.learning`` writes them anew.

A ridge-penalised logistic regression over the features of :mod:`memarena.text.stance_features`, once for "declines" and
once for "withholds" among those that decline. No chance enters: texts, their wordings and the numerical method are
fixed, and weights are rounded.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from memarena.text.lexicon import read_file
from memarena.text.stance_features import see

WEIGHTS = "stance_weights.v1.json"
_TRAINING = files("memarena.text.training")
_TABLES = ("blind_dev.v1.tsv", "blind_a.v1.tsv", "blind_b.v1.tsv", "blind_c.v1.tsv", "collected.v1.tsv", "pairs.v1.tsv")
_PENALTY = 0.3
_LEAST_TEXTS = 2
"""A feature that fewer texts have is not learned."""
_TOTAL = 500.0
"""What all declining texts weigh together, and all others."""
_BY_HAND = 10.0
"""What a single answer weighs beside one wording of a pattern."""
_SUBJECTS = {
    "stances.v1.toml": 3,
    "mixed.v1.toml": 4,
    "planted.v1.toml": 3,
    "styles_first.v1.toml": 3,
    "styles_second.v1.toml": 3,
}
"""With how many subjects each wording of a file is told."""
_STYLES = 2.0
"""What a wording of the sets of many styles weighs."""
_ALTERNATIVES = re.compile(r"\(([^()]*\|[^()]*)\)")
_BESIDE_EVERY = 6
"""One in so many wordings is also told with a clause beside it."""


@dataclass(frozen=True)
class Text:
    """A labelled answer. ``source`` is the text that it is a wording of."""

    question: str
    answer: str
    declines: bool
    manner: str
    """``k`` claims not to have it, ``r`` withholds it, empty where not said."""
    weight: float
    source: str


def texts(without: Iterable[str] = ()) -> list[Text]:
    """Every training text in a fixed order, those of the files named left out."""
    left_out = frozenset(without)
    written = [*_from_tables(left_out), *(text for name in _SUBJECTS for text in _from_patterns(name))]
    return [*written, *_beside(written)]


def _from_tables(left_out: frozenset[str]) -> Iterator[Text]:
    for name in _TABLES:
        if name in left_out:
            continue
        for line in _TRAINING.joinpath(name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                label, question, answer = line.split("\t")
                answer = answer.replace("\\n", "\n").replace("\\\\", "\\")
                yield Text(question, answer, label[0] == "+", label[1:], _BY_HAND, answer)


def _from_patterns(name: str) -> Iterator[Text]:
    table = tomllib.loads(_TRAINING.joinpath(name).read_text(encoding="utf-8"))
    subjects: list[dict[str, str]] = table["subjects"]
    position = 0
    for section, manner in (("dont_know", "k"), ("refuse", "r"), ("declines", ""), ("answers", ""), ("neither", "")):
        declines = bool(manner) or section == "declines"
        for pattern in table.get(section, ()):
            told = wordings(pattern)
            for wording in told:
                for turn in range(_SUBJECTS[name]):
                    subject = subjects[(position * 7 + turn * 5) % len(subjects)]
                    answer = _sentences(_filled(wording, subject))
                    weight = 1 / len(told) ** 0.5 * (_STYLES if name.startswith("styles") else 1.0)
                    yield Text(subject["question"], answer, declines, manner, weight, pattern)
                position += 1


def wordings(pattern: str) -> list[str]:
    """Wordings of a pattern in which every alternative of ``(a|b)`` occurs; which go together is fixed by a hash."""
    pieces = _ALTERNATIVES.split(pattern)
    columns = [piece.split("|") if i % 2 else [piece] for i, piece in enumerate(pieces)]
    most = max(map(len, columns))
    if most == 1:
        return [pattern]
    count = most + min(most, 4)
    turned = [
        [column[(row * _step(column) + _hash(pattern, place)) % len(column)] for row in range(count)]
        for place, column in enumerate(columns)
    ]
    joined = ("".join(parts) for parts in zip(*turned, strict=True))
    return list(dict.fromkeys(_tightened(text) for text in joined))


def _tightened(text: str) -> str:
    """One blank between words, none before a comma or a contraction."""
    return re.sub(r"\s+([,;]|'(?:d|ve|ll|m|re|s)\b)", r"\1", re.sub(r"\s+", " ", text)).strip()


def _step(column: Sequence[str]) -> int:
    """By how many alternatives to go on each time, so that two columns of one length do not march in step."""
    steps = [n for n in (1, 2, 3, 5, 7) if np.gcd(n, len(column)) == 1]
    return steps[_hash(*column) % len(steps)]


def _hash(*parts: object) -> int:
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16)


def _filled(wording: str, subject: Mapping[str, str]) -> str:
    for name, text in subject.items():
        wording = wording.replace("{" + name + "}", text)
    return wording


def _sentences(text: str) -> str:
    return re.sub(r"(^|[.?!] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)


def _beside(written: Sequence[Text]) -> Iterator[Text]:
    """Texts once more with a clause beside them that changes nothing."""
    table = tomllib.loads(_TRAINING.joinpath("stances.v1.toml").read_text(encoding="utf-8"))
    clauses = [wording for pattern in table["beside"] for wording in wordings(pattern)]
    who = ("he", "she", "they", "your sister", "the group")
    for position, text in enumerate(written):
        every = 1 if text.source == text.answer else _BESIDE_EVERY
        if position % every or not text.answer.strip():
            continue
        draw = _hash(text.question, text.answer)
        clause = clauses[draw % len(clauses)].replace("{who}", who[draw % len(who)])
        clause = clause[0].upper() + clause[1:]
        body = text.answer if text.answer.rstrip()[-1] in '.!?}*"' else f"{text.answer}."
        answer = f"{clause}. {body}" if draw % 5 < 2 else f"{body} {clause}."
        yield Text(text.question, answer, text.declines, text.manner, text.weight, text.source)


# ------------------------------------------------------------------ learning


def learn(rows: Sequence[Text]) -> dict[str, dict[str, float]]:
    """Weights of both questions: ``declines`` for all rows, ``withholds`` for those whose manner is said."""
    seen = [see(row.answer, row.question).features() for row in rows]
    told = [i for i, row in enumerate(rows) if row.manner]
    return {
        "declines": _regression(rows, seen, [row.declines for row in rows]),
        "withholds": _regression(
            [rows[i] for i in told], [seen[i] for i in told], [rows[i].manner == "r" for i in told]
        ),
    }


def _regression(rows: Sequence[Text], seen: Sequence[list[str]], label: Sequence[bool]) -> dict[str, float]:
    names = _frequent(rows, seen)
    index = {name: i for i, name in enumerate(names)}
    cells = [(i, index[f]) for i, features in enumerate(seen) for f in features if f in index]
    at, of = np.array(cells).T
    matrix = csr_matrix((np.ones(len(cells)), (at, of)), shape=(len(rows), len(names)))
    sign = np.where(np.array(label), 1.0, -1.0)
    weight = np.array([row.weight for row in rows])
    for side in (1.0, -1.0):
        weight[sign == side] *= _TOTAL / weight[sign == side].sum()

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (matrix @ point)
        value = float(weight @ np.logaddexp(0, -margin)) + _PENALTY / 2 * float(point @ point)
        return value, matrix.T @ (-sign * weight / (1 + np.exp(margin))) + _PENALTY * point

    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-10})
    rounded = {name: round(float(w), 2) for name, w in zip(names, found.x, strict=True)}
    return {name: weight_ for name, weight_ in rounded.items() if weight_}


def _frequent(rows: Sequence[Text], seen: Iterable[list[str]]) -> list[str]:
    """Features that more than one text has, whatever its wordings."""
    sources: dict[str, set[str]] = {}
    for row, features in zip(rows, seen, strict=True):
        for feature in features:
            sources.setdefault(feature, set()).add(row.source)
    return sorted(name for name, having in sources.items() if len(having) >= _LEAST_TEXTS)


def stored_weights() -> str:
    """The file of the weights as the package has it."""
    return read_file(WEIGHTS)


def dump(weights: Mapping[str, Mapping[str, float]]) -> str:
    """The file of the weights, one feature a line."""
    return json.dumps(weights, indent=0, sort_keys=True, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    target = Path(str(files("memarena.text") / "lexicons" / WEIGHTS))
    target.write_text(dump(learn(texts())), encoding="utf-8")
