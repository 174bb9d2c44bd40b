"""Chooses the solver's rule for each family of questions, and measures how often it is right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memarena_dataset.gold import AnaphoraGold
from memarena_dataset.model import Family, Instance

from memarena_dataset_quality.answers import gold_values, is_right
from memarena_dataset_quality.solver import details, sessions, times
from memarena_dataset_quality.solver.evidence import Task, task_of
from memarena_dataset_quality.solver.lexicon import Lexicon
from memarena_dataset_quality.world import World


@dataclass(frozen=True, slots=True)
class Miss:
    """A question that the solver answers wrongly."""

    world: str
    instance_id: str
    family: str
    kinds: tuple[str, ...]
    query: str
    answer: str
    gold: str


@dataclass(frozen=True, slots=True)
class Solved:
    """Counts of value questions and of right answers, over all and by family, with the wrong answers."""

    questions: int
    right: int
    by_family: dict[str, tuple[int, int]]
    """(Right, asked) by family."""
    misses: tuple[Miss, ...]


def is_value_question(instance: Instance) -> bool:
    """Whether a right answer states typed values that follow from cited turns."""
    return bool(instance.evidence_turn_ids) and bool(gold_values(instance))


def solve(task: Task, family: Family, lexicon: Lexicon) -> str:
    """Return an answer from the evidence; empty if no rule gives one."""
    match family:
        case Family.CLOZE:
            return details.option(task)
        case Family.METADATA:
            return sessions.answer(task) or _detail(task, lexicon)
        case Family.TEMPORAL:
            return times.answer(task, lexicon)
        case Family.CONFLICT:
            return " or ".join(details.two_versions(task, lexicon))
        case Family.QA:
            return _first(details.candidates(times.as_asked(task), lexicon, 1))
        case _:
            return _first(details.candidates(task, lexicon, 1))


def _detail(task: Task, lexicon: Lexicon) -> str:
    """Return a detail from the evidence; for a set, one from each turn, joined by semicolons."""
    if task.kinds != ("set",):
        return _first(details.candidates(task, lexicon, 1))
    tasks = [replace(task, kinds=("term",), turns=(turn,)) for turn in task.turns]
    return "; ".join(_first(details.candidates(single, lexicon, 1)) for single in tasks)


def _first(values: list[str]) -> str:
    return values[0] if values else ""


def solve_worlds(worlds: Sequence[World], others: Iterable[World]) -> Solved:
    """Solve every value question of ``worlds``; ``others`` only add to the known names, places and terms."""
    lexicon = Lexicon((*worlds, *others))
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    misses = []
    for world in worlds:
        for instance in filter(is_value_question, world.instances):
            task = task_of(world, instance)
            answer = solve(task, instance.family, lexicon)
            right = is_right(instance, answer, world.day_of(instance.query_timestamp or 0.0))
            counts[instance.family.value][0] += right
            counts[instance.family.value][1] += 1
            if not right:
                misses.append(_miss(world, instance, task, answer))
    return Solved(
        questions=sum(count for _, count in counts.values()),
        right=sum(right for right, _ in counts.values()),
        by_family={family: (right, count) for family, (right, count) in sorted(counts.items())},
        misses=tuple(misses),
    )


def _miss(world: World, instance: Instance, task: Task, answer: str) -> Miss:
    gold = instance.gold
    gold_text = gold.referent if isinstance(gold, AnaphoraGold) else "; ".join(
        value.model_dump_json(exclude_none=True) for value in gold_values(instance)
    )  # fmt: skip
    return Miss(world.path.name, instance.instance_id, instance.family.value, task.kinds, task.query, answer, gold_text)
