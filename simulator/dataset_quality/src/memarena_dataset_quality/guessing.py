"""Measures how many questions can be answered without any memory, by guessers that see only the question.

A data set whose answers can be guessed says little about a memory, so ``measures.py`` sets a bar for this. Guessers
learn from the questions of training worlds; there, the guesser of each family is chosen by leaving out each world in
turn. On the tested worlds, it is compared, question by question, with the best constant of the family: the answer that
is right for most of the tested questions themselves.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memarena_dataset.gold import AbstainGold, ClozeGold, PermissionGold, TextGold
from memarena_dataset.model import Instance

from memarena_dataset_quality.answers import gold_values, is_right
from memarena_dataset_quality.logistic_regression import LogisticModel
from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World

NEIGHBOURS = 15
"""Number of the most similar training questions that vote on an answer."""
MOST_CLASSES = 8
"""Number of classes of the regression: the most frequent answers."""
LEAST_ITEMS = 1_600
"""Number of questions below which the table says that there are too few for the pooled figure.

With a standard deviation of 0.4, the bound over 1,600 differences is 2 points above their mean: as much as the bar.
"""


@dataclass(frozen=True, slots=True)
class Guessed:
    """Shares of right answers; ``above`` is guesser minus best constant, with its upper 95% bound."""

    questions: int
    guessed: float
    constant: float
    above: float
    above_upper: float

    @classmethod
    def of(cls, differences: Sequence[int], constant: float) -> Guessed:
        """Compute from the differences between guesser and constant, question by question."""
        above = statistics.fmean(differences)
        error = statistics.pstdev(differences) / math.sqrt(len(differences))
        return cls(len(differences), constant + above, constant, above, above + 1.96 * error)


@dataclass(frozen=True, slots=True)
class Guessing:
    """Results of the guessers over all families, each compared with its own best constant."""

    pooled: Guessed
    by_family: dict[str, Guessed]
    chosen: dict[str, str]
    """Name of the guesser that was chosen, by family."""


def label(instance: Instance) -> str:
    """Return the right answer in a comparable form: a letter, an action, ``abstain`` or typed values as JSON."""
    gold = instance.gold
    if isinstance(gold, ClozeGold):
        return gold.answer_letter
    if isinstance(gold, PermissionGold):
        return gold.expected_action
    if isinstance(gold, AbstainGold):
        return "abstain"
    values = gold_values(instance)
    if not values and isinstance(gold, TextGold):
        return "; ".join(gold.answers)
    return json.dumps([value.model_dump(mode="json", exclude_none=True) for value in values], sort_keys=True)


def _features(instance: Instance) -> list[str]:
    """Return the words and word pairs of a question, and its kind of asker: the ego, another person or none."""
    query_words = words(instance.query.split("\n")[0])
    asker = "owner" if instance.asker_agent_id == instance.ego_agent_id else instance.asker_agent_id or "nobody"
    kind = asker if asker in ("owner", "nobody") else "somebody"
    return [f"#{kind}", *query_words, *(f"{first} {second}" for first, second in pairwise(query_words))]


class _Guesser:
    """Guesses for the questions of one family, learned from others."""

    def __init__(self, known: Sequence[Instance]) -> None:
        self._labels = [label(instance) for instance in known]
        self._features = [frozenset(_features(instance)) for instance in known]
        self._constant = Counter(self._labels).most_common(1)[0][0]
        counts = Counter(name for features in self._features for name in features)
        self._weights = {name: math.log(1 + len(known) / count) for name, count in counts.items()}
        self._by_label: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._label_counts = Counter(self._labels)
        self._common = [answer for answer, _ in self._label_counts.most_common(MOST_CLASSES)]
        self._model: LogisticModel | None = None
        for answer, features in zip(self._labels, self._features, strict=True):
            self._by_label[answer].update(features)
        self._shown: Counter[str] = Counter()
        self._right: Counter[str] = Counter()
        for instance in known:
            if isinstance(instance.gold, ClozeGold):
                self._shown.update(instance.gold.options)
                self._right[instance.gold.answer_text] += 1

    def constant(self, instance: Instance) -> str:
        """Return the most frequent answer."""
        return self._constant

    def neighbours(self, instance: Instance) -> str:
        """Return the answer of most questions in similar words."""
        question_features = set(_features(instance))
        scored = []
        for index, features in enumerate(self._features):
            shared = sum(self._weights[name] for name in question_features & features)
            # -index: of equally similar questions, the earlier comes first in the descending order below
            scored.append((shared / math.sqrt(len(features) + 1), -index))
        votes: Counter[str] = Counter()
        for weight, index in sorted(scored, reverse=True)[:NEIGHBOURS]:
            votes[self._labels[-index]] += int(1000 * weight)
        return max(votes, key=lambda answer: (votes[answer], answer), default=self._constant)

    def words_of_question(self, instance: Instance) -> str:
        """Guess by naive Bayes from the question's words, among the 60 most frequent answers."""
        total = len(self._labels)
        question_features = _features(instance)

        def score(answer: str) -> float:
            count = self._label_counts[answer]
            return math.log(count / total) + sum(
                math.log((self._by_label[answer][name] + 0.5) / (count + 1))
                for name in question_features
                if name in self._weights
            )

        common = [answer for answer, _ in self._label_counts.most_common(60)]
        return max(common, key=lambda answer: (score(answer), answer))

    def regression(self, instance: Instance) -> str:
        """Guess by logistic regression from the question's words, among the most frequent answers."""
        if self._model is None:
            usable = [index for index, answer in enumerate(self._labels) if answer in self._common]
            self._model = LogisticModel(
                [self._features[index] for index in usable],
                [self._common.index(self._labels[index]) for index in usable],
                len(self._common),
            )
        return self._common[self._model.best(frozenset(_features(instance)))]

    def options(self, instance: Instance) -> str:
        """Return the lettered option that was right most often when it was offered."""
        gold = instance.gold
        if not isinstance(gold, ClozeGold):
            return self._constant
        # smoothed by one question more with a chance of 0.2: a cloze question has five options
        rates = [(self._right[text] + 0.2) / (self._shown[text] + 1) for text in gold.options]
        return "ABCDEFGHIJ"[rates.index(max(rates))]


_NAMES = ("constant", "neighbours", "words_of_question", "regression", "options")


def _strategy(guesser: _Guesser, name: str) -> Callable[[Instance], str]:
    strategies: Mapping[str, Callable[[Instance], str]] = {
        "constant": guesser.constant,
        "neighbours": guesser.neighbours,
        "words_of_question": guesser.words_of_question,
        "regression": guesser.regression,
        "options": guesser.options,
    }
    return strategies[name]


def guess(train: Sequence[World], test: Sequence[World]) -> Guessing | None:
    """Guess the questions of ``test`` in every family that ``train`` has too. Return None if there is none.

    With a single training world, guessers cannot be compared by leaving it out: every family gets ``constant``.
    """
    by_family_of_train = [_by_family(world) for world in train]
    families = sorted({family for world in by_family_of_train for family in world})
    differences: dict[str, list[int]] = {}
    constants: dict[str, float] = {}
    chosen: dict[str, str] = {}
    for family in families:
        questions = [instance for world in test for instance in _by_family(world).get(family, [])]
        if not questions:
            continue
        chosen[family] = _choose([world.get(family, []) for world in by_family_of_train])
        strategy = _strategy(
            _Guesser([instance for world in by_family_of_train for instance in world.get(family, [])]), chosen[family]
        )
        best, _ = Counter(label(instance) for instance in questions).most_common(1)[0]
        same = [int(label(instance) == best) for instance in questions]
        constants[family] = statistics.fmean(same)
        right = [int(strategy(instance) == label(instance)) for instance in questions]
        # 1 if only the guesser is right, -1 if only the constant is, else 0
        differences[family] = [mine - other for mine, other in zip(right, same, strict=True)]
    return _pool(differences, constants, chosen) if differences else None


def _pool(by_family: dict[str, list[int]], constants: dict[str, float], chosen: dict[str, str]) -> Guessing:
    """Return the figures of the differences between guesser and constant, question by question, by family."""
    differences = [difference for of_family in by_family.values() for difference in of_family]
    constant = sum(constants[family] * len(of_family) for family, of_family in by_family.items()) / len(differences)
    guessed = {family: Guessed.of(of_family, constants[family]) for family, of_family in by_family.items()}
    return Guessing(Guessed.of(differences, constant), guessed, chosen)


def guess_with(answer: Callable[[Instance], str], worlds: Sequence[World], limit: int) -> Guessing | None:
    """Measure what ``answer`` knows without context, on up to ``limit`` questions of all worlds whose gold has values.

    Permission and abstention are left out: there the words of an answer without context say nothing.
    """
    questions = [(world, instance) for world in worlds for instance in world.instances if gold_values(instance)]
    # every n-th question, so that all worlds and families stay in the sample
    questions = questions[:: max(1, -(-len(questions) // limit))]
    differences: defaultdict[str, list[int]] = defaultdict(list)
    constants: dict[str, float] = {}
    for family in sorted({instance.family.value for _, instance in questions}):
        pairs = [(world, instance) for world, instance in questions if instance.family.value == family]
        best, _ = Counter(label(instance) for _, instance in pairs).most_common(1)[0]
        same = [int(label(instance) == best) for _, instance in pairs]
        constants[family] = statistics.fmean(same)
        for (world, instance), other in zip(pairs, same, strict=True):
            today = world.day_of(instance.query_timestamp or 0.0)
            differences[family].append(int(is_right(instance, answer(instance), today)) - other)
    return _pool(dict(differences), constants, {}) if differences else None


def _by_family(world: World) -> dict[str, list[Instance]]:
    instances: defaultdict[str, list[Instance]] = defaultdict(list)
    for instance in world.instances:
        instances[instance.family.value].append(instance)
    return dict(instances)


def _choose(worlds: Sequence[Sequence[Instance]]) -> str:
    """Return the guesser that is right most often on each training world, learned from the others.

    Of guessers that are right equally often, it is the first of _NAMES.
    """
    right: Counter[str] = Counter(dict.fromkeys(_NAMES, 0))
    for index, held_out in enumerate(worlds):
        training = [instance for other, world in enumerate(worlds) if other != index for instance in world]
        if not training:
            continue
        guesser = _Guesser(training)
        for name in _NAMES:
            strategy = _strategy(guesser, name)
            right[name] += sum(strategy(instance) == label(instance) for instance in held_out)
    return max(_NAMES, key=lambda name: (right[name], -_NAMES.index(name)))
