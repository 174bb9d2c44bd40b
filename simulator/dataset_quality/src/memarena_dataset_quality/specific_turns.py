"""Whether turns that hold something to be remembered stand out from all others, without any question.

A logistic regression over words and word pairs, with names and digits masked, learns on other worlds which turns hold a
planned statement, or evidence of a question, and ranks the turns of the measured worlds. Beside it, how many of the
other turns hold a digit at all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from memarena_dataset.model import Instance, Session

from memarena_dataset_quality.evidence_cues import auc
from memarena_dataset_quality.logistic_regression import LogisticModel
from memarena_dataset_quality.world import World

LEARNED_FROM = 6_000
"""Turns that the classifier learns from, at most, drawn evenly."""
LEAST_SEEN = 5
"""Words and pairs in fewer turns are left out."""
_TOKEN = re.compile(r"\d[\d:.,]*|[A-Za-z']+")

Chosen = Callable[[World], frozenset[str]]
"""Ids of the turns to be told from all others."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Shares of turns that hold a digit: of those with a planned statement, and of all others."""

    stating: float
    others: float


def planned_turns(world: World) -> frozenset[str]:
    """Turns with a planned statement."""
    return frozenset(fact.turn_id for fact in world.facts)


def evidence_turns(world: World) -> frozenset[str]:
    """Turns that are evidence of a question."""
    return frozenset(turn_id for one in world.instances for turn_id in one.evidence_turn_ids)


def digits(worlds: Sequence[World]) -> Digits | None:
    """Shares over all turns of the worlds. None without planned statements or without other turns."""
    held: dict[bool, list[bool]] = {True: [], False: []}
    for world in worlds:
        stating = planned_turns(world)
        for turn_id, (turn, _) in world.turns.items():
            held[turn_id in stating].append(any(char.isdigit() for char in turn.text))
    if not held[True] or not held[False]:
        return None
    return Digits(sum(held[True]) / len(held[True]), sum(held[False]) / len(held[False]))


def told_apart(train: Sequence[World], worlds: Sequence[World], chosen: Chosen) -> float | None:
    """AUC of the chosen turns against all others, learned on ``train``. None where either has only one kind."""
    learned = _rows(train, chosen)
    measured = _rows(worlds, chosen)
    if {label for _, label in learned} != {True, False} or {label for _, label in measured} != {True, False}:
        return None
    learned = random.Random(0).sample(learned, min(LEARNED_FROM, len(learned)))  # noqa: S311 - a sample, not a secret
    seen: dict[str, int] = {}
    for row, _ in learned:
        for name in row:
            seen[name] = seen.get(name, 0) + 1
    kept = frozenset(name for name, times in seen.items() if times >= LEAST_SEEN)
    model = LogisticModel([row & kept for row, _ in learned], [int(label) for _, label in learned], 2)
    scores = model.scores([row for row, _ in measured])
    labels = [label for _, label in measured]
    return auc(
        [score for score, label in zip(scores, labels, strict=True) if label],
        [score for score, label in zip(scores, labels, strict=True) if not label],
    )


def told_apart_within(world: World, chosen: Chosen) -> float | None:
    """Mean AUC of :func:`told_apart` over the conversations of one data set, each learned on all others.

    A conversation is all sessions of the same people (LoCoMo: two each). None where they have people in common, or
    there is only one.
    """
    talks: dict[frozenset[str], list[Session]] = {}
    for session in world.sessions:
        talks.setdefault(frozenset(session.participants), []).append(session)
    if len(talks) < 2 or sum(map(len, talks)) > len(frozenset().union(*talks)):
        return None
    parts = [replace(world, sessions=tuple(own), instances=_asked_of(world, own)) for own in talks.values()]
    found = [told_apart([other for other in parts if other is not part], [part], chosen) for part in parts]
    areas = [area for area in found if area is not None]
    return fmean(areas) if areas else None


def _asked_of(world: World, sessions: Sequence[Session]) -> tuple[Instance, ...]:
    there = {turn.turn_id for session in sessions for turn in session.turns}
    return tuple(one for one in world.instances if there.issuperset(one.evidence_turn_ids))


def _rows(worlds: Sequence[World], chosen: Chosen) -> list[tuple[frozenset[str], bool]]:
    found = []
    for world in worlds:
        names = frozenset(part.lower() for name in world.names.values() for part in name.split())
        wanted = chosen(world)
        found += [(_features(turn.text, names), turn_id in wanted) for turn_id, (turn, _) in world.turns.items()]
    return found


def _features(text: str, names: frozenset[str]) -> frozenset[str]:
    tokens = []
    for token in _TOKEN.findall(text):
        lowered = token.lower()
        tokens.append("#digit" if token[0].isdigit() else "#name" if lowered in names else lowered)
    return frozenset(tokens) | {f"{one} {other}" for one, other in pairwise(tokens)}
