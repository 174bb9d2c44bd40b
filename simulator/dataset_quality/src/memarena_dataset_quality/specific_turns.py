"""Measures whether turns with facts to remember stand out from all others, without any question.

A logistic regression over words and word pairs, with names and digits masked, learns on other worlds which turns hold a
planned statement, or evidence of a question, and ranks the turns of the measured worlds. Also measured: how many of the
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
    """Return the ids of turns with a planned statement."""
    return frozenset(fact.turn_id for fact in world.facts)


def evidence_turns(world: World) -> frozenset[str]:
    """Return the ids of turns that are evidence of a question."""
    return frozenset(turn_id for instance in world.instances for turn_id in instance.evidence_turn_ids)


def digits(worlds: Sequence[World]) -> Digits | None:
    """Return the shares over all turns of the worlds. None without planned statements or without other turns."""
    has_digit: dict[bool, list[bool]] = {True: [], False: []}
    for world in worlds:
        stating = planned_turns(world)
        for turn_id, (turn, _) in world.turns.items():
            has_digit[turn_id in stating].append(any(char.isdigit() for char in turn.text))
    if not has_digit[True] or not has_digit[False]:
        return None
    return Digits(sum(has_digit[True]) / len(has_digit[True]), sum(has_digit[False]) / len(has_digit[False]))


def area_apart(train: Sequence[World], worlds: Sequence[World], chosen: Chosen) -> float | None:
    """Return the AUC of the chosen turns against all others, learned on ``train``. None if either has only one kind."""
    learned = _rows(train, chosen)
    measured = _rows(worlds, chosen)
    if {label for _, label in learned} != {True, False} or {label for _, label in measured} != {True, False}:
        return None
    learned = random.Random(0).sample(learned, min(LEARNED_FROM, len(learned)))  # noqa: S311 - a sample, not a secret
    counts: dict[str, int] = {}
    for row, _ in learned:
        for name in row:
            counts[name] = counts.get(name, 0) + 1
    features = frozenset(name for name, times in counts.items() if times >= LEAST_SEEN)
    model = LogisticModel([row & features for row, _ in learned], [int(label) for _, label in learned], 2)
    scores = model.scores([row for row, _ in measured])
    labels = [label for _, label in measured]
    return auc(
        [score for score, label in zip(scores, labels, strict=True) if label],
        [score for score, label in zip(scores, labels, strict=True) if not label],
    )


def area_within(world: World, chosen: Chosen) -> float | None:
    """Return the mean AUC of :func:`area_apart` over the conversations of a data set, each learned on all others.

    A conversation is all sessions of the same people (LoCoMo: two each). None if they have people in common, or
    there is only one.
    """
    talks: dict[frozenset[str], list[Session]] = {}
    for session in world.sessions:
        talks.setdefault(frozenset(session.participants), []).append(session)
    if len(talks) < 2 or sum(map(len, talks)) > len(frozenset().union(*talks)):
        return None
    parts = [replace(world, sessions=tuple(own), instances=_asked_of(world, own)) for own in talks.values()]
    areas_or_none = [area_apart([other for other in parts if other is not part], [part], chosen) for part in parts]
    areas = [area for area in areas_or_none if area is not None]
    return fmean(areas) if areas else None


def _asked_of(world: World, sessions: Sequence[Session]) -> tuple[Instance, ...]:
    turn_ids = {turn.turn_id for session in sessions for turn in session.turns}
    return tuple(instance for instance in world.instances if turn_ids.issuperset(instance.evidence_turn_ids))


def _rows(worlds: Sequence[World], chosen: Chosen) -> list[tuple[frozenset[str], bool]]:
    rows = []
    for world in worlds:
        names = frozenset(part.lower() for name in world.names.values() for part in name.split())
        chosen_turns = chosen(world)
        rows += [(_features(turn.text, names), turn_id in chosen_turns) for turn_id, (turn, _) in world.turns.items()]
    return rows


def _features(text: str, names: frozenset[str]) -> frozenset[str]:
    tokens = []
    for token in _TOKEN.findall(text):
        lowered = token.lower()
        tokens.append("#digit" if token[0].isdigit() else "#name" if lowered in names else lowered)
    return frozenset(tokens) | {f"{token} {next_token}" for token, next_token in pairwise(tokens)}
