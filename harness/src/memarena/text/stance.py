"""Does an answer decline? Says it that it does not know, or that it will not tell, and offers no value all the same?

Learned weights (``lexicons/stance_weights.v1.json``) over what is seen in the answer's clauses
(:mod:`memarena.text.stance_features`) decide. Each clause is weighed twice, for declining what was asked for and for
giving it; the strongest of each side are set against each other, for one clause that gives the value outweighs any
number that decline other things, and one that declines it any number of facts beside it. A plain sum over everything
that is seen in the answer comes on top; above 0 it declines. Another sum says whether it withholds what it has. The
clauses that weigh most for each side are named.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

from memarena.text.lexicon import read_file
from memarena.text.stance_features import Seen, Sight, see

Manner = Literal["dont_know", "refuse", "none"]
_OWN_VOICE = ("Ni", "Nh", "Nc")
"""Shapes of clauses that negate with the speaker, ``there`` or the records as their subject."""
_WEIGHTS = "stance_weights.v1.json"
SHARPNESS = 2.0
"""How far the strongest clause of a side alone decides: the higher, the less do the others add."""
_UNMARKED = 2.0
"""What an answer without a word of declining has to weigh at least to be one that declines all the same."""
_NONE = (0.0, 0.0, 0.0)

Weights = Mapping[str, Sequence[float]]
"""Of each feature: what it adds to the sum; of those of clauses also what it weighs for declining and for giving."""


@dataclass(frozen=True)
class Stance:
    """How an answer stands to its question."""

    manner: Manner
    """``refuse`` has it and withholds it, ``dont_know`` claims not to have it (also where it leaves open which)."""
    asserts: str
    """The clause that offers a value, empty if none does."""
    declines: str
    """The clause that declines, empty if none does."""
    declines_first: bool = False
    """Whether a clause that declines what was asked for stands before the asserting one."""
    turned: tuple[str, ...] = ()
    """Every clause that declines by itself: what is said in another is not taken back."""

    @property
    def abstains(self) -> bool:
        """Declines and asserts no value: what the abstain half of D5 wants."""
        return self.manner != "none" and not self.asserts


def read_stance(answer: str, question: str = "", names: Iterable[str] = ()) -> Stance:
    """Read an answer's stance.

    The question tells which words and values are no news in the answer; ``names`` are those by which the answer may
    address its asker.
    """
    return _read(answer, question, tuple(names))


@lru_cache(maxsize=4096)
def _read(answer: str, question: str, names: tuple[str, ...]) -> Stance:
    # The same answer is read for its judging, its label and its settling.
    sight = see(answer, question, names)
    if not sight.clauses:
        return Stance("none", "", "")
    weighed = [_weigh_clause(seen) for seen in sight.clauses]
    scored = [one.score for one in weighed]
    total = _weigh_whole(sight, weighed)
    # Where no clause has a word of declining, other words have to say it plainly.
    if total > (0 if any(seen.declines or seen.marked for seen in sight.clauses) else _UNMARKED):
        top = max(range(len(scored)), key=scored.__getitem__)
        turned = tuple(seen.clause for seen in sight.clauses if seen.declines)
        return Stance(_manner(sight, weighed), "", sight.clauses[top].clause, turned=turned)
    low = min(range(len(scored)), key=lambda i: (not sight.clauses[i].offers, scored[i]))
    declining = [i for i, seen in enumerate(sight.clauses) if seen.declines and scored[i] > 0 and i != low]
    if not declining:
        return Stance("none", sight.clauses[low].clause, "")
    # In its own voice only: "not the red one: the blue one" puts right, and declines nothing.
    own = [i for i in declining if sight.clauses[i].shape.startswith(_OWN_VOICE) and not sight.clauses[i].aside]
    first = any(i < low for i in own)
    return Stance(_manner(sight, weighed), sight.clauses[low].clause, sight.clauses[declining[0]].clause, first)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What the features of one clause weigh. A feature that adds nothing to a sum is left out of it."""

    alone: float
    declining: float
    giving: float
    adds: Mapping[str, float]
    """To the sum over everything that is seen in the answer."""
    withholds: Mapping[str, float]

    @property
    def score(self) -> float:
        """Above 0 the clause looks like one that declines."""
        return self.declining - self.giving + self.alone


@lru_cache(maxsize=4096)
def _weigh_clause(seen: Seen) -> _Weighed:
    weights: Weights = _stored()["declines"]
    features = dict.fromkeys(seen.features)
    known = [weights[f] for f in features if f in weights]
    alone, declining, giving = (math.fsum(side) for side in zip(*known, strict=True)) if known else _NONE
    return _Weighed(alone, declining, giving, _of(_adding(), features), _of(_stored()["withholds"], features))


def _of(weights: Mapping[str, float], features: Iterable[str]) -> Mapping[str, float]:
    return {f: weight for f in features if (weight := weights.get(f))}


def _weigh_whole(sight: Sight, clauses: Sequence[_Weighed]) -> float:
    """What an answer weighs; above 0 it declines."""
    merged: dict[str, float] = {}
    # A feature that comes again adds nothing.
    for one in clauses:
        merged |= one.adds
    merged |= _of(_adding(), sight.whole)
    strongest = _strongest([one.declining for one in clauses]) - _strongest([one.giving for one in clauses])
    return math.fsum(merged.values()) + strongest


def _strongest(scores: Sequence[float]) -> float:
    """A smooth maximum: close scores strengthen each other a little."""
    top = max(scores, default=0.0)
    return top + math.log(math.fsum(math.exp(SHARPNESS * (s - top)) for s in scores) or 1.0) / SHARPNESS


def _manner(sight: Sight, clauses: Sequence[_Weighed]) -> Manner:
    merged: dict[str, float] = {}
    for one in clauses:
        merged |= one.withholds
    merged |= _of(_stored()["withholds"], sight.whole)
    return "refuse" if math.fsum(merged.values()) > 0 else "dont_know"


@cache
def _adding() -> Mapping[str, float]:
    """What each feature adds to the sum over the whole answer."""
    weights: Weights = _stored()["declines"]
    return {feature: float(weight[0]) for feature, weight in weights.items() if weight[0]}


@cache
def _stored() -> Mapping[Literal["declines", "withholds"], Any]:
    found: Mapping[Literal["declines", "withholds"], Any] = json.loads(read_file(_WEIGHTS))
    return found
