"""Measures shortcuts to permission questions (D6): policies that decide by a single cue, such as the wish alone.

The right action follows from wish and asker together, so a policy with one cue must not do better than chance. Only the
items that count for F1_PU are measured. Youden's J is the share of the facts to be disclosed that a policy discloses,
less that share of the facts to be withheld: 0 is chance. Each policy is the best of its kind, fitted to the very items
that it is measured on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memarena_dataset.gold import PermissionGold
from memarena_dataset.model import Instance

from memarena_dataset_quality.logistic_regression import LogisticModel
from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World


@dataclass(frozen=True, slots=True)
class PermissionShortcuts:
    """Youden's J of policies that each see one thing, and the share of items whose fact is asked with both actions."""

    items: int
    wish_alone: float
    """Sees the kind of wish: its level, whether it names a person who may or must not know, whether it names a day."""
    asker_alone: float
    """Sees the asker's relation to the ego."""
    named_alone: float
    """Sees whether the wish names the asker."""
    always: float
    """Discloses to every asker."""
    crossed: float
    """The share of items whose fact is asked about with both actions."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A permission question that counts for F1_PU. ``number`` is the index of its world."""

    world: World
    number: int
    instance: Instance
    gold: PermissionGold

    @property
    def discloses(self) -> bool:
        return self.gold.expected_action == "disclose"

    @property
    def asker(self) -> str:
        return str(self.instance.metadata.get("relationship") or ("" if self.instance.asker_agent_id else "anonymous"))

    @property
    def wish(self) -> Hashable:
        sharing = self.gold.sharing
        if sharing is None:
            return (self.gold.permission_level,)
        return (
            self.gold.permission_level,
            bool(sharing.may_know),
            bool(sharing.may_not_know),
            bool(sharing.not_before),
        )

    @property
    def names_asker(self) -> bool:
        sharing = self.gold.sharing
        return sharing is not None and self.instance.asker_agent_id in (*sharing.may_know, *sharing.may_not_know)

    @property
    def fact(self) -> Hashable:
        return self.number, self.instance.ego_agent_id, self.instance.metadata.get("fact_id")

    def features(self) -> frozenset[str]:
        """Return the question's words, the asker's kind, and the tenth of its session that each evidence turn is in."""
        query_words = words(self.instance.query)
        positions = [f"place {int(10 * self.world.places[turn])}" for turn in self.instance.evidence_turn_ids]
        spoken = [f"{first} {second}" for first, second in pairwise(query_words)]
        return frozenset((f"asker {self.asker}", f"turns {len(positions)}", *positions, *query_words, *spoken))


def _items(worlds: Sequence[World]) -> Iterator[_Item]:
    for number, world in enumerate(worlds):
        for instance in world.instances:
            gold = instance.gold
            if isinstance(gold, PermissionGold) and not (gold.self_item or gold.control):
                yield _Item(world, number, instance, gold)


def permission_shortcuts(worlds: Sequence[World]) -> PermissionShortcuts | None:
    """Measure the policies over the items of all worlds. None without both actions."""
    items = list(_items(worlds))
    if len({item.discloses for item in items}) < 2:
        return None
    actions: defaultdict[Hashable, set[bool]] = defaultdict(set)
    for item in items:
        actions[item.fact].add(item.discloses)
    return PermissionShortcuts(
        len(items),
        _best_j(items, lambda item: item.wish),
        _best_j(items, lambda item: item.asker),
        _best_j(items, lambda item: item.names_asker),
        _best_j(items, lambda _: None),
        sum(len(actions[item.fact]) == 2 for item in items) / len(items),
    )


def _best_j(items: Sequence[_Item], sees: Callable[[_Item], Hashable]) -> float:
    """Return J of the policy that discloses to each view in which disclosing is right more often than on average."""
    share = sum(item.discloses for item in items) / len(items)
    counts, hits = Counter(map(sees, items)), Counter(sees(item) for item in items if item.discloses)
    tells = {view for view in counts if hits[view] / counts[view] > share}
    told_counts = Counter(item.discloses for item in items if sees(item) in tells)
    return told_counts[True] / (share * len(items)) - told_counts[False] / ((1 - share) * len(items))


def guessed_actions(train: Sequence[World], worlds: Sequence[World]) -> tuple[float, float, int] | None:
    """Predict actions from question text, kind of asker and position of the evidence, as learned on other worlds.

    Returns the share that is right, that of the best constant, and the number of items; None if one side has no item
    of both actions.
    """
    training, tested = list(_items(train)), list(_items(worlds))
    if len({item.discloses for item in training}) < 2 or len({item.discloses for item in tested}) < 2:
        return None
    model = LogisticModel([item.features() for item in training], [int(item.discloses) for item in training], 2)
    right = sum(bool(model.best(item.features())) == item.discloses for item in tested)
    commonest = Counter(item.discloses for item in tested).most_common(1)[0][1]
    return right / len(tested), commonest / len(tested), len(tested)
