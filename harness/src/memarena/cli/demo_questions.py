"""Chooses the demonstration's questions: all of them, those of one ego for slow memories, a few for an LLM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Family, Instance

from memarena.execution.errors import RunError

SAMPLE = 11
"""Questions to the language model: the fewest for which a median is reported."""


@dataclass(frozen=True)
class DemoQuestions:
    """Instance ids of the three parts of the demonstration."""

    everything: tuple[str, ...]
    """All questions that count in a score."""
    one_person: tuple[str, ...]
    """Questions of one ego, whose history is short and so quick to embed."""
    sample: tuple[str, ...]
    """:data:`SAMPLE` of that ego's questions, families in turn."""
    egos: int


def demo_questions(dataset: Dataset) -> DemoQuestions:
    """Choose the questions of the demonstration.

    The ego of the second and third part has the shortest history among those with at least :data:`SAMPLE` questions.
    Raises :class:`RunError` if no ego has so many.
    """
    scored = [instance for instance in dataset.instances if instance.family is not Family.WITNESS]
    by_ego: dict[str, list[Instance]] = {}
    for instance in sorted(scored, key=lambda instance: instance.instance_id):
        by_ego.setdefault(instance.ego_agent_id, []).append(instance)
    candidates = sorted(ego for ego, instances in by_ego.items() if len(instances) >= SAMPLE)
    if not candidates:
        raise RunError(f"the demonstration needs a person with {SAMPLE} questions; {dataset.path} has no such person")
    person = min(candidates, key=lambda ego: _history_chars(dataset, ego))
    return DemoQuestions(
        everything=tuple(instance.instance_id for instance in scored),
        one_person=tuple(instance.instance_id for instance in by_ego[person]),
        sample=tuple(instance.instance_id for instance in _families_in_turn(by_ego[person])[:SAMPLE]),
        egos=len(by_ego),
    )


def _history_chars(dataset: Dataset, ego: str) -> int:
    """Return the number of characters of all sessions in an ego's history."""
    sessions = chain.from_iterable(dataset.day_sessions(ego, day) for day in range(dataset.day_count))
    return sum(len(turn.text) for session in sessions for turn in session.turns)


def _families_in_turn(own: Sequence[Instance]) -> list[Instance]:
    by_family: dict[Family, list[Instance]] = {}
    for instance in own:
        by_family.setdefault(instance.family, []).append(instance)
    groups = [by_family[family] for family in Family if family in by_family]
    return [instance for layer in zip_longest(*groups) for instance in layer if instance is not None]
