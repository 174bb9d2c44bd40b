"""Which questions the demonstration asks of whom: all of everybody, and a person's sample where a question is slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Family, Instance

from memarena.execution.errors import RunError

SAMPLE = 11
"""Questions to the language model: as few as a median needs."""


@dataclass(frozen=True)
class DemoQuestions:
    """Instance ids of the three parts."""

    everything: tuple[str, ...]
    """Every question that counts in a score."""
    one_person: tuple[str, ...]
    """Those of one ego, whose history is quick to embed."""
    sample: tuple[str, ...]
    """:data:`SAMPLE` of that ego's questions, families in turn."""
    egos: int


def demo_questions(dataset: Dataset) -> DemoQuestions:
    """The questions of the demonstration.

    The one person is the ego with the shortest history of those with enough questions. Raises :class:`RunError` where
    nobody has enough.
    """
    scored = [one for one in dataset.instances if one.family is not Family.WITNESS]
    by_ego: dict[str, list[Instance]] = {}
    for one in sorted(scored, key=lambda one: one.instance_id):
        by_ego.setdefault(one.ego_agent_id, []).append(one)
    able = sorted(ego for ego, own in by_ego.items() if len(own) >= SAMPLE)
    if not able:
        raise RunError(
            f"the demonstration needs a person with {SAMPLE} questions; nobody in {dataset.path} has so many"
        )
    person = min(able, key=lambda ego: _history_chars(dataset, ego))
    return DemoQuestions(
        everything=tuple(one.instance_id for one in scored),
        one_person=tuple(one.instance_id for one in by_ego[person]),
        sample=tuple(one.instance_id for one in _families_in_turn(by_ego[person])[:SAMPLE]),
        egos=len(by_ego),
    )


def _history_chars(dataset: Dataset, ego: str) -> int:
    """Characters of all that this person heard and said."""
    sessions = chain.from_iterable(dataset.day_sessions(ego, day) for day in range(dataset.day_count))
    return sum(len(turn.text) for session in sessions for turn in session.turns)


def _families_in_turn(own: Sequence[Instance]) -> list[Instance]:
    piles: dict[Family, list[Instance]] = {}
    for one in own:
        piles.setdefault(one.family, []).append(one)
    ordered = [piles[family] for family in Family if family in piles]
    return [one for layer in zip_longest(*ordered) for one in layer if one is not None]
