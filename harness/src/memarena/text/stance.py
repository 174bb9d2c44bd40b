"""Does an answer decline? Says it that it does not know, or that it will not tell, and offers no value all the same?

A sum of learned weights (``lexicons/stance_weights.v1.json``) over what is seen in the answer's clauses
(:mod:`memarena.text.stance_features`) decides; above 0 it declines. A second sum says whether it withholds what it has.
The clauses that weigh most for each side are named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from memarena.text.lexicon import read_file
from memarena.text.stance_features import Seen, Sight, see

Manner = Literal["dont_know", "refuse", "none"]
_OWN_VOICE = ("Ni", "Nh", "Nc")
"""Shapes of clauses that negate with the speaker, ``there`` or the records as their subject."""
_WEIGHTS = "stance_weights.v1.json"


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
    weights = _weights("declines")
    scored = _by_clause(sight, weights)
    total = sum(scored) + sum(weights.get(f, 0.0) for f in sight.whole)
    # Where no clause has a word of declining, weights of other words alone do not make it one.
    if total > 0 and any(seen.declines or seen.marked for seen in sight.clauses):
        top = max(range(len(scored)), key=scored.__getitem__)
        turned = tuple(seen.clause for seen in sight.clauses if seen.declines)
        return Stance(_manner(sight), "", sight.clauses[top].clause, turned=turned)
    low = min(range(len(scored)), key=lambda i: (not sight.clauses[i].offers, scored[i]))
    declining = [i for i, seen in enumerate(sight.clauses) if _turns_down(seen, scored[i]) and i != low]
    if not declining:
        return Stance("none", sight.clauses[low].clause, "")
    # In its own voice only: "not the red one: the blue one" puts right, and declines nothing.
    own = [i for i in declining if sight.clauses[i].shape.startswith(_OWN_VOICE) and not sight.clauses[i].aside]
    first = any(i < low for i in own)
    return Stance(_manner(sight), sight.clauses[low].clause, sight.clauses[declining[0]].clause, first)


def _by_clause(sight: Sight, weights: Mapping[str, float]) -> list[float]:
    """What each clause weighs; a feature that comes again counts where it comes first."""
    counted: set[str] = set()
    scores = []
    for seen in sight.clauses:
        fresh = set(seen.features) - counted
        counted |= fresh
        scores.append(sum(weights.get(f, 0.0) for f in sorted(fresh)))
    return scores


def _turns_down(seen: Seen, score: float) -> bool:
    return seen.declines and score > 0


def _manner(sight: Sight) -> Manner:
    weights = _weights("withholds")
    return "refuse" if sum(weights.get(f, 0.0) for f in sight.features()) > 0 else "dont_know"


@cache
def _weights(side: Literal["declines", "withholds"]) -> Mapping[str, float]:
    found: Mapping[str, float] = json.loads(read_file(_WEIGHTS))[side]
    return found
