"""Tests properties of the example data set that the demo and other tests rely on.

A change of the example that lost one of them would leave other tests with nothing to check.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from memarena_dataset.gold import PermissionGold
from memarena_dataset.io.gold_reading import lettered_options
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family

NINE = {family for family in Family if family is not Family.WITNESS}


def test_three_people_together_have_questions_of_all_nine_families(example: Path) -> None:
    with open_dataset(example) as dataset:
        counts = Counter(instance.family for instance in dataset.instances)
        assert set(counts) == NINE
        assert min(counts.values()) >= 2
        assert len(dataset.egos) == 3
        assert {dataset.question_day(instance) for instance in dataset.instances} == {0, 1}


def test_a_cloze_shows_its_five_options_in_the_question(example: Path) -> None:
    with open_dataset(example) as dataset:
        clozes = [instance for instance in dataset.instances if instance.family is Family.CLOZE]
    for instance in clozes:
        assert lettered_options(instance.query) == getattr(instance.gold, "options", None)
        assert len(lettered_options(instance.query)) == 5


def test_permission_items_are_crossed(example: Path) -> None:
    """Neither fact nor asker determines the action: each occurs with both actions."""
    by_fact: defaultdict[str, set[str]] = defaultdict(set)
    by_asker: defaultdict[tuple[str, str | None], set[str]] = defaultdict(set)
    with open_dataset(example) as dataset:
        for instance in dataset.instances:
            if isinstance(instance.gold, PermissionGold):
                by_fact[str(instance.metadata["fact_id"])].add(instance.gold.expected_action)
                by_asker[instance.ego_agent_id, instance.asker_agent_id].add(instance.gold.expected_action)
    assert sum(len(actions) == 2 for actions in by_fact.values()) >= 2
    assert sum(len(actions) == 2 for actions in by_asker.values()) >= 3
