"""Learns the weights by which an answer is seen to decline: ``python -m memarena.text.learning`` writes them anew.

Over the features of :mod:`memarena.text.stance_features`, with a ridge penalty: "withholds", among those that decline,
by a logistic regression; "declines" by one that also has a contest of the strongest clauses
(:func:`memarena.text.stance.weigh`), begun at the solution of the plain one. No chance enters: texts, their wordings
and the numerical method are fixed, and weights are rounded.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from memarena.text.lexicon import read_file
from memarena.text.stance import SHARPNESS
from memarena.text.stance_features import Seen, Sight, see

WEIGHTS = "stance_weights.v1.json"
_TRAINING = files("memarena.text.training")
_TABLES = (
    "blind_dev.v1.tsv",
    "blind_a.v1.tsv",
    "blind_b.v1.tsv",
    "blind_c.v1.tsv",
    "collected.v1.tsv",
    "pairs.v1.tsv",
    "varied_not_known.v1.tsv",
    "varied_permission.v1.tsv",
    "varied_polished.v1.tsv",
    "varied_turned_down.v1.tsv",
    "varied_neighbouring.v1.tsv",
    "varied_usual.v1.tsv",
    "varied_negated.v1.tsv",
)
_PENALTY = 0.3
_CLAUSE_PENALTY = 0.1
"""Of the weights of clauses, chosen by cross-validation over the tables, their questions kept together."""
_SUM_PENALTY = 0.15
_LEAST_TEXTS = 3
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


def texts() -> list[Text]:
    """Every training text in a fixed order."""
    written = [*_from_tables(), *(text for name in _SUBJECTS for text in _from_patterns(name))]
    return [*written, *_beside(written)]


def _from_tables() -> Iterator[Text]:
    for name in _TABLES:
        for line in _TRAINING.joinpath(name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                label, question, answer = line.split("\t")
                answer = unescaped(answer)
                yield Text(question, answer, label[0] == "+", label[1:], _BY_HAND, answer)


def unescaped(answer: str) -> str:
    """An answer of a table with its line breaks."""
    return answer.replace("\\n", "\n").replace("\\\\", "\\")


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


Array = np.ndarray[Any, np.dtype[np.float64]]
Learned = dict[str, dict[str, Any]]


def learn(rows: Sequence[Text]) -> Learned:
    """Weights of both questions: ``declines`` for all rows, ``withholds`` for those whose manner is said."""
    seen = [see(row.answer, row.question) for row in rows]
    told = [i for i, row in enumerate(rows) if row.manner]
    told_rows, refuses = [rows[i] for i in told], [rows[i].manner == "r" for i in told]
    names, point = _regression(told_rows, [seen[i].features() for i in told], refuses)
    rounded = {name: round(float(w), 2) for name, w in zip(names, point, strict=True)}
    return {"declines": _contest(rows, seen), "withholds": {name: w for name, w in rounded.items() if w}}


def _regression(
    rows: Sequence[Text], seen: Sequence[list[str]], label: Sequence[bool], close: float = 1e-10
) -> tuple[list[str], Array]:
    names = _frequent(rows, seen)
    matrix = _matrix(seen, names)
    sign, weight = _sides(rows, label)

    def loss(point: Array) -> tuple[float, Array]:
        value, slope = _misfit(sign, weight, matrix @ point)
        return value + _PENALTY / 2 * float(point @ point), matrix.T @ slope + _PENALTY * point

    return names, _least(loss, np.zeros(len(names)), close)


def _contest(rows: Sequence[Text], seen: Sequence[Sight]) -> dict[str, list[float]]:
    """What each feature adds to the sum, and those of clauses weigh for declining and for giving."""
    label = [row.declines for row in rows]
    every = [sight.features() for sight in seen]
    names, plain = _regression(rows, every, label, 1e-6)
    # A text without clauses counts as one of nothing.
    clauses = [list(dict.fromkeys(c.features)) for sight in seen for c in sight.clauses or [Seen("", [])]]
    count = np.array([max(len(sight.clauses), 1) for sight in seen])
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    part, whole = _matrix(clauses, names), _matrix(every, names)
    part_t, whole_t = part.T.tocsr(), whole.T.tocsr()
    sign, weight = _sides(rows, label)
    size = len(names)
    penalty = np.repeat([_SUM_PENALTY, _CLAUSE_PENALTY, _CLAUSE_PENALTY], size)

    def strongest(scores: Array) -> tuple[Array, Array]:
        top = np.maximum.reduceat(scores, starts)
        grown = np.exp(SHARPNESS * (scores - np.repeat(top, count)))
        total = np.add.reduceat(grown, starts)
        return top + np.log(total) / SHARPNESS, grown / np.repeat(total, count)

    def loss(point: Array) -> tuple[float, Array]:
        over, for_declining, for_giving = np.split(point, 3)
        declining, share_d = strongest(part @ for_declining)
        giving, share_g = strongest(part @ for_giving)
        value, slope = _misfit(sign, weight, declining - giving + whole @ over)
        each = np.repeat(slope, count)
        gradient = np.concatenate([whole_t @ slope, part_t @ (each * share_d), -(part_t @ (each * share_g))])
        return value + float(penalty @ (point * point)) / 2, gradient + penalty * point

    begun = np.concatenate([plain / 2, plain / 4, -plain / 4])
    # Closer to the least, it takes minutes and errs no less in cross-validation.
    found = np.round(np.split(_least(loss, begun, 1e-7), 3), 2)
    of_clauses = {f for features in clauses for f in features}
    kept = {}
    for name, weights in zip(names, found.T.tolist(), strict=True):
        if any(weights):
            kept[name] = [w + 0.0 for w in weights[: 3 if name in of_clauses else 1]]
    return kept


def _matrix(seen: Sequence[list[str]], names: Sequence[str]) -> csr_matrix:
    index = {name: i for i, name in enumerate(names)}
    cells = [(i, index[f]) for i, features in enumerate(seen) for f in features if f in index]
    at, of = np.array(cells).T
    return csr_matrix((np.ones(len(cells)), (at, of)), shape=(len(seen), len(names)))


def _sides(rows: Sequence[Text], label: Sequence[bool]) -> tuple[Array, Array]:
    """Which side each text is on, 1 or -1, and its weight."""
    sign = np.where(np.array(label), 1.0, -1.0)
    weight = np.array([row.weight for row in rows])
    for side in (1.0, -1.0):
        weight[sign == side] *= _TOTAL / weight[sign == side].sum()
    return sign, weight


def _misfit(sign: Array, weight: Array, total: Array) -> tuple[float, Array]:
    """The logistic loss and its slope."""
    margin = sign * total
    return float(weight @ np.logaddexp(0, -margin)), -sign * weight * expit(-margin)


def _least(loss: Callable[[Array], tuple[float, Array]], start: Array, close: float = 1e-10) -> Array:
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": close})
    point: Array = found.x
    return point


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


def dump(weights: Learned) -> str:
    """The file of the weights, one feature a line."""
    sides = []
    for side, found in sorted(weights.items()):
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
        sides.append(f"{json.dumps(side)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(sides) + "\n}\n"


if __name__ == "__main__":
    target = Path(str(files("memarena.text") / "lexicons" / WEIGHTS))
    target.write_text(dump(learn(texts())), encoding="utf-8")
