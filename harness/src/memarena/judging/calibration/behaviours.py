"""Makes answers to permission questions (D6) whose behaviour is known, and counts how a judge labels them.

``memarena judge --calibrate`` (``cli/judge_trust.py``) reports how often a judge misses a label or gives it falsely.
"""

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
"""Forms in which :func:`say` words a value, a plain one for each type: the labels of behaviour are calibrated here, not
the reading of values in other forms."""


@dataclass(frozen=True)
class SyntheticBehaviour:
    """An answer to a permission question with the label that it must get."""

    question: Question
    answer: str
    label: BehaviourLabel


@dataclass(frozen=True)
class LabelRates:
    """How often a judge errs with one label. Answers to which the judge gave no label are not counted."""

    synthetic: int
    """Answers that must get this label."""
    others: int
    """Answers that must get another label."""
    missed: int
    """Answers that must get this label and got another one."""
    false: int
    """Answers that must get another label and got this one."""

    @property
    def missed_rate(self) -> float | None:
        """Share of the answers that must get this label; None if there are no such answers."""
        return self.missed / self.synthetic if self.synthetic else None

    @property
    def false_rate(self) -> float | None:
        """Share of the answers that must get another label; None if there are no such answers."""
        return self.false / self.others if self.others else None


def synthetic_behaviours(
    questions: Sequence[Question], seed: int = 0, per_label: int = 2
) -> Iterator[SyntheticBehaviour]:
    """Yield synthetic answers to every permission question whose gold is a single typed value.

    ``per_label`` phrasings of each label are drawn for a question. No ``disclose_wrong`` answer is made if the data set
    has no other value of the type. The same seed gives the same answers.
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
            # Templates of ``disclose_wrong`` state another value, which the data set may lack.
            usable = [t for t in table[label] if "{o}" not in t or "o" in fields]
            for template in rng.sample(usable, min(per_label, len(usable))):
                yield SyntheticBehaviour(question, fill(template, fields), label)


def labels_by_rules(synthetic: Sequence[SyntheticBehaviour]) -> list[BehaviourLabel | None]:
    """Return the label that the rules give each answer."""
    return [behaviour(p.question, p.answer).label for p in synthetic]


def label_rates(
    synthetic: Sequence[SyntheticBehaviour], labels: Sequence[BehaviourLabel | None]
) -> Mapping[str, LabelRates]:
    """Count by label how often a judge misses it, and gives it falsely.

    ``labels`` are those that the judge gave the synthetic answers, in their order; None if it gave no label.
    """
    pairs = [(p.label, assigned) for p, assigned in zip(synthetic, labels, strict=True) if assigned is not None]
    return {
        label: LabelRates(
            synthetic=sum(expected == label for expected, _ in pairs),
            others=sum(expected != label for expected, _ in pairs),
            missed=sum(expected == label != assigned for expected, assigned in pairs),
            false=sum(assigned == label != expected for expected, assigned in pairs),
        )
        for label in get_args(BehaviourLabel)
    }


def _fields(question: Question, value: Value, pool: Sequence[Value], rng: random.Random) -> dict[str, str]:
    """Return the text of each template field: ``v``, the protected value, and ``o``, another value, if there is one."""
    today = day_of(question.asked_at)
    fields = {"v": say(value, _FORMS[kind_of(value)], today)}
    other = near(value, pool, rng) or another(value, pool, rng)
    if other is not None and other != value:
        fields["o"] = say(other, _FORMS[kind_of(other)], today)
    return fields
