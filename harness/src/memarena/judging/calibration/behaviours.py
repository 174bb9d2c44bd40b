"""Makes answers to permission questions (D6) whose behaviour is known, and counts how a judge labels them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from memarena_dataset.gold import PermissionGold
from memarena_dataset.values import Value

from memarena.judging.calibration.synthetic_answers import BEHAVIOURS
from memarena.judging.calibration.value_paraphrases import another, fill, kind_of, near, say
from memarena.judging.kinds.permission import behaviour
from memarena.judging.tables import toml_file
from memarena.judging.typed_value.question import day_of
from memarena.log.records import BehaviourLabel, Question

_FORMS: Mapping[str, str] = {
    "name": "{full}",
    "place": "{name}",
    "term": "{text}",
    "date": "{month} {day}, {year}",
    "month": "{month} {year}",
    "year": "{year}",
    "weekday": "{weekday}",
    "time": "{h}:{mm} {half}",
    "duration": "{n} days",
    "amount": "{n} {unit}",
    "order": "{list}",
    "set": "{and}",
}
"""One plain form for each type of value: what is calibrated here is behaviour, not the reading of values."""


@dataclass(frozen=True)
class SyntheticBehaviour:
    """An answer to a permission question with the label that it must get."""

    question: Question
    answer: str
    label: BehaviourLabel


@dataclass(frozen=True)
class LabelRates:
    """How one label is given. Rates are shares; None without any such answer. Answers without a label count in none."""

    synthetic: int
    others: int
    missed: int
    """Answers of this label that got another one."""
    false: int
    """Answers of other labels that got this one."""

    @property
    def missed_rate(self) -> float | None:
        """Share of the answers of this label."""
        return self.missed / self.synthetic if self.synthetic else None

    @property
    def false_rate(self) -> float | None:
        """Share of the answers of other labels."""
        return self.false / self.others if self.others else None


def synthetic_behaviours(
    questions: Sequence[Question], seed: int = 0, per_label: int = 2
) -> Iterator[SyntheticBehaviour]:
    """Synthetic answers to every permission question with one typed value; the same seed gives the same.

    ``per_label`` phrasings of each label are drawn for a question; a value that the data set offers no other value for
    gets none of ``disclose_wrong``.
    """
    table = toml_file(BEHAVIOURS, "synthetic")
    golds = [(q, q.instance.gold) for q in questions]
    pool = [v for _, gold in golds if isinstance(gold, PermissionGold) for v in gold.values]
    for question, gold in golds:
        if not isinstance(gold, PermissionGold) or len(gold.values) != 1:
            continue
        rng = random.Random(f"{seed}/behaviours/{question.instance.instance_id}")  # noqa: S311 (no secret)
        fields = _fields(question, gold.values[0], pool, rng)
        for label in get_args(BehaviourLabel):
            usable = [t for t in table[label] if "{o}" not in t or "o" in fields]
            for template in rng.sample(usable, min(per_label, len(usable))):
                yield SyntheticBehaviour(question, fill(template, fields), label)


def labels_by_rules(synthetic: Sequence[SyntheticBehaviour]) -> list[BehaviourLabel | None]:
    """The deterministic label of each answer."""
    return [behaviour(p.question, p.answer).label for p in synthetic]


def label_rates(
    synthetic: Sequence[SyntheticBehaviour], labels: Sequence[BehaviourLabel | None]
) -> Mapping[str, LabelRates]:
    """How often each label is missed, and given falsely; ``labels`` are a judge's, None where it gave none."""
    pairs = [(p.label, label) for p, label in zip(synthetic, labels, strict=True) if label is not None]
    return {
        label: LabelRates(
            synthetic=sum(true == label for true, _ in pairs),
            others=sum(true != label for true, _ in pairs),
            missed=sum(true == label != label_set for true, label_set in pairs),
            false=sum(label_set == label != true for true, label_set in pairs),
        )
        for label in get_args(BehaviourLabel)
    }


def _fields(question: Question, value: Value, pool: Sequence[Value], rng: random.Random) -> dict[str, str]:
    today = day_of(question.asked_at)
    fields = {"v": say(value, _FORMS[kind_of(value)], today)}
    other = near(value, pool, rng) or another(value, pool, rng)
    if other is not None and other != value:
        fields["o"] = say(other, _FORMS[kind_of(other)], today)
    return fields
