"""Measures whether a statement betrays that a question follows: a classifier trained and tested on different worlds.

If it does, a memory can keep just the turns that questions are about. The classifier is naive Bayes over words, word
pairs, length, position in the session and digits. Applied to all turns of an ego without a question, it must not rank
the evidence first either.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World

LEAST_SEEN = 3
"""Features seen less often are left out."""
TOP = 10


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """A stated fact as the classifier sees it; ``position`` from 0, the first turn of the session, to 1."""

    asked: bool
    text: str
    position: float


@dataclass(frozen=True, slots=True)
class BlindRetrieval:
    """Share of evidence among the ten turns that look most asked after, and what ten random turns would hold."""

    recall: float
    random: float

    @property
    def ratio(self) -> float:
        """Return the ratio of the measured recall to that of random turns."""
        return self.recall / self.random if self.random else math.nan


def stated_facts(world: World) -> list[LabelledTurn]:
    """Return every planned statement with its turn's text and relative position."""
    return [
        LabelledTurn(fact.asked, world.turns[fact.turn_id][0].text, world.places[fact.turn_id])
        for fact in world.facts
        if fact.turn_id in world.turns
    ]


class CueClassifier:
    """Log odds that a turn is asked after, learned from statements of other worlds."""

    def __init__(self, statements: Iterable[LabelledTurn]) -> None:
        self._counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self._totals: Counter[bool] = Counter()
        for statement in statements:
            self._counts[statement.asked].update(_features(statement.text, statement.position))
            self._totals[statement.asked] += 1

    def score(self, text: str, position: float) -> float:
        """Return the log odds of a turn; higher is more like the turns that questions are about."""
        counts_asked, counts_rest = self._counts[True], self._counts[False]
        return sum(
            math.log((counts_asked[name] + 1) / (self._totals[True] + 2))
            - math.log((counts_rest[name] + 1) / (self._totals[False] + 2))
            for name in _features(text, position)
            if counts_asked[name] + counts_rest[name] >= LEAST_SEEN
        )

    def area(self, worlds: Iterable[Sequence[LabelledTurn]]) -> float:
        """Return the AUC of separating statements with questions from those without. NaN if either kind is missing."""
        scored = [(turn.asked, self.score(turn.text, turn.position)) for world in worlds for turn in world]
        return auc(
            [score for is_asked, score in scored if is_asked], [score for is_asked, score in scored if not is_asked]
        )

    def retrieve(self, world: World) -> BlindRetrieval | None:
        """Rank every ego's turns without any question. None if no question has evidence."""
        recalls, chances = [], []
        for ego in sorted({instance.ego_agent_id for instance in world.instances}):
            turns = world.projections[ego]
            scores = {turn.turn_id: self.score(turn.text, world.places[turn.turn_id]) for turn in turns}
            best = set(sorted(scores, key=lambda turn_id: -scores[turn_id])[:TOP])
            for instance in world.instances:
                evidence = set(instance.evidence_turn_ids)
                if instance.ego_agent_id == ego and evidence:
                    recalls.append(len(best & evidence) / len(evidence))
                    chances.append(min(1.0, TOP / len(turns)))
        return BlindRetrieval(statistics.fmean(recalls), statistics.fmean(chances)) if recalls else None


def _features(text: str, position: float) -> set[str]:
    tokens = words(text)
    pairs = {f"{first} {second}" for first, second in pairwise(tokens)}
    length = f"#len{int(math.log2(1 + len(tokens)) * 2)}"
    digits = f"#digit{any(char.isdigit() for char in text)}"
    return set(tokens) | pairs | {length, digits, f"#pos{int(position * 10)}"}


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the area under the ROC curve; ties count half. NaN without both classes."""
    if not positive or not negative:
        return math.nan
    ranked = sorted([(value, True) for value in positive] + [(value, False) for value in negative])
    total, index = 0.0, 0
    while index < len(ranked):
        end = index
        while end < len(ranked) and ranked[end][0] == ranked[index][0]:
            end += 1
        total += sum(label for _, label in ranked[index:end]) * (index + end + 1) / 2
        index = end
    return (total - len(positive) * (len(positive) + 1) / 2) / (len(positive) * len(negative))
