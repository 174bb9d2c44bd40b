"""Measures how often a model and its rules are wrong on independent sets, and what each part contributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena.judging.linear_model import LinearModel

from judge_training.rates import Rate
from judge_training.task import Case, Task
from judge_training.training import train

KEPT_FROM = 0.003
"""A part stays if an independent set gets worse by more than this share without it."""


@dataclass(frozen=True)
class SetRates:
    """Errors on one set."""

    name: str
    missed: Rate
    """Cases labelled yes that were read as no."""
    taken: Rate
    """Cases labelled no that were read as yes."""
    wrong: tuple[Case, ...]

    @property
    def share(self) -> float:
        """Share of all cases that were read wrongly."""
        return len(self.wrong) / (self.missed.cases + self.taken.cases)


def evaluate(task: Task, model: LinearModel, skip: frozenset[str] = frozenset()) -> list[SetRates]:
    """Return the errors on every independent set of a task."""
    return [_measure(task, model, name, cases, skip) for name, cases in task.independent().items()]


def _measure(task: Task, model: LinearModel, name: str, cases: Sequence[Case], skip: frozenset[str]) -> SetRates:
    wrong = [case for case in cases if task.verdict(case, model, skip) != case.label]
    yes = sum(case.label for case in cases)
    missed = sum(case.label for case in wrong)
    return SetRates(name, Rate(missed, yes), Rate(len(wrong) - missed, len(cases) - yes), tuple(wrong))


def ablation(task: Task) -> tuple[list[SetRates], Mapping[str, list[SetRates]]]:
    """Return the errors with all parts, and by name of the part the errors without it.

    Without a group of features the model is trained again.
    """
    examples = task.examples()
    full_model = train(examples, task.settings)
    without: dict[str, list[SetRates]] = {}
    for rule in task.rules:
        model = train(examples, task.settings, rule.without_features) if rule.without_features else full_model
        skip = frozenset({rule.without_rule} if rule.without_rule else ())
        without[rule.name] = evaluate(task, model, skip)
    return evaluate(task, full_model), without
