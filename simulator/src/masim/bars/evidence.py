"""Evidence bars of design 6: nothing but the question leads to the evidence. From files alone.

A naive Bayes classifier on words, word pairs, length, position and digits learns from some worlds which stated facts
are asked after and is tried on others; where evidence stands and how long it is must not tell either; and a lexical
ranking must find some of it, but not all.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from masim.bars.text import rows, words

K1, B = 1.5, 0.75
TOP = 10


@dataclass(frozen=True, slots=True)
class Stated:
    """A stated fact as the classifier sees it."""

    asked: bool
    text: str
    position: float


@dataclass(frozen=True, slots=True)
class PlaceFigures:
    """``worst_decile`` is the largest share of evidence in a tenth of the session, ``length_ratio`` of medians."""

    worst_decile: float
    length_ratio: float


def stated_facts(folder: Path) -> list[Stated]:
    """Every statement of a world with its turn's text and relative position."""
    where = {
        turn["turn_id"]: (turn["text"], place / max(1, len(row["turns"]) - 1))
        for row in rows(folder, "corpus_sessions.jsonl")
        for place, turn in enumerate(row["turns"])
    }
    return [Stated(bool(fact["asked"]), *where[fact["turn_id"]]) for fact in rows(folder, "facts.jsonl")]


def cue_auc(train: list[list[Stated]], test: list[list[Stated]]) -> float:
    """AUC of telling asked from unasked statements on worlds that were not trained on."""
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    totals: Counter[bool] = Counter()
    for world in train:
        for one in world:
            counts[one.asked].update(_features(one))
            totals[one.asked] += 1

    def score(one: Stated) -> float:
        return sum(
            math.log((counts[True][name] + 1) / (totals[True] + 2))
            - math.log((counts[False][name] + 1) / (totals[False] + 2))
            for name in _features(one)
            if counts[True][name] + counts[False][name] >= 3
        )

    scored = [(one.asked, score(one)) for world in test for one in world]
    return auc([value for asked, value in scored if asked], [value for asked, value in scored if not asked])


def auc(positive: list[float], negative: list[float]) -> float:
    """Area under the ROC curve; ties count half. NaN without both classes."""
    if not positive or not negative:
        return math.nan
    ranked = sorted([(value, True) for value in positive] + [(value, False) for value in negative])
    total, at = 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        total += sum(label for _, label in ranked[at:end]) * (at + end + 1) / 2
        at = end
    return (total - len(positive) * (len(positive) + 1) / 2) / (len(positive) * len(negative))


def _features(one: Stated) -> set[str]:
    found = words(one.text)
    pairs = {f"{first} {second}" for first, second in pairwise(found)}
    length = f"#len{int(math.log2(1 + len(found)) * 2)}"
    digits = f"#digit{any(char.isdigit() for char in one.text)}"
    return set(found) | pairs | {length, digits, f"#pos{int(one.position * 10)}"}


def place_figures(folder: Path) -> PlaceFigures:
    """Where evidence stands in its session and how long it is beside other turns."""
    evidence = {turn for row in _instances(folder) for turn in row["metadata"]["evidence_turn_ids"]}
    deciles: Counter[int] = Counter()
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for row in rows(folder, "corpus_sessions.jsonl"):
        for place, turn in enumerate(row["turns"]):
            cited = turn["turn_id"] in evidence
            lengths[cited].append(len(words(turn["text"])))
            if cited:
                deciles[min(9, int(10 * place / max(1, len(row["turns"]) - 1)))] += 1
    total = sum(deciles.values())
    if not total:
        return PlaceFigures(math.nan, math.nan)
    return PlaceFigures(
        max(deciles.values()) / total, statistics.median(lengths[True]) / statistics.median(lengths[False])
    )


def bm25_recall(folder: Path) -> dict[str, float]:
    """Share of evidence turns among the ten that BM25 ranks first in the ego's projection, by family."""
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _instances(folder):
        if row["metadata"]["evidence_turn_ids"]:
            asked[row["ego_agent_id"]].append(row)
    turns: dict[str, list[tuple[str, float, list[str]]]] = defaultdict(list)
    for row in rows(folder, "corpus_sessions.jsonl"):
        said = [(turn["turn_id"], turn["timestamp"], words(turn["text"])) for turn in row["turns"]]
        for person in row["participants"]:
            if person in asked:
                turns[person] += said
    recalls: dict[str, list[float]] = defaultdict(list)
    for ego, questions in asked.items():
        index = _Index(turns[ego])
        for row in questions:
            wanted = set(row["metadata"]["evidence_turn_ids"])
            found = set(index.top(words(row["query"]), row["metadata"]["query_timestamp"]))
            recalls[row["dimension"]].append(len(wanted & found) / len(wanted))
    return {family: statistics.fmean(values) for family, values in sorted(recalls.items())}


class _Index:
    """BM25 over the turns of one ego."""

    def __init__(self, turns: list[tuple[str, float, list[str]]]) -> None:
        self._turns = turns
        self._mean = statistics.fmean(len(tokens) for _, _, tokens in turns)
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, (_, _, tokens) in enumerate(turns):
            for word, count in Counter(tokens).items():
                self._postings[word].append((place, count))

    def top(self, query: list[str], until: float) -> list[str]:
        """Ids of the best turns said before ``until``."""
        scores: dict[int, float] = defaultdict(float)
        for word in query:
            posting = self._postings.get(word, [])
            weight = math.log(1 + (len(self._turns) - len(posting) + 0.5) / (len(posting) + 0.5))
            for place, count in posting:
                if self._turns[place][1] <= until:
                    norm = K1 * (1 - B + B * len(self._turns[place][2]) / self._mean)
                    scores[place] += weight * count * (K1 + 1) / (count + norm)
        best = sorted(scores, key=lambda place: (-scores[place], place))[:TOP]
        return [self._turns[place][0] for place in best]


def _instances(folder: Path) -> list[dict[str, Any]]:
    names = sorted(path.name.removesuffix(".gz") for path in (folder / "eval_instances").iterdir())
    return [row for name in names for row in rows(folder / "eval_instances", name)]
