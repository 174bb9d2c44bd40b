"""Tests measures of shortcuts through the history: each detects its flaw, planted in a world.

A *shortcut* is a rule that answers without understanding, such as to choose the option that was mentioned last. If it
worked, a score would measure the shortcut and not memory.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from memarena_dataset.gold import ClozeGold
from memarena_dataset.model import Turn
from memarena_dataset_quality.history_shortcuts import (
    ambiguous_references,
    cloze_shortcuts,
    vague_dates,
)
from memarena_dataset_quality.world import World, read_world

from .worlds import evidence_ids, retold


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


def test_an_answer_that_is_repeated_at_the_end_is_found(world: World) -> None:
    """Where the last four turns of every history name the right option, it is also the one that is mentioned most."""
    rights = " and ".join(
        instance.gold.answer_text for instance in world.instances if isinstance(instance.gold, ClozeGold)
    )
    wrong = " and ".join(
        option
        for instance in world.instances
        if isinstance(instance.gold, ClozeGold)
        for option in instance.gold.options
        if option != instance.gold.answer_text
    )
    last = {turn.turn_id for turns in world.projections.values() for turn in turns[-4:]}

    def ends_with(words: str) -> World:
        return retold(world, lambda turn: f"{turn.text} {words}." if turn.turn_id in last else turn.text)

    late = tuple(instance.model_copy(update={"query_timestamp": None}) for instance in world.instances)
    plain_result, right_result, wrong_result = (
        cloze_shortcuts([replace(variant, instances=late)]) for variant in (world, ends_with(rights), ends_with(wrong))
    )
    assert plain_result is not None
    assert right_result is not None
    assert wrong_result is not None
    assert right_result.last > plain_result.last > wrong_result.last
    assert right_result.most_often > plain_result.most_often > wrong_result.most_often


def test_an_answer_that_a_person_keeps_naming_is_found(world: World) -> None:
    """What is said in the turns of one person counts for the questions that name them, and for no other."""
    clozes = [instance for instance in world.instances if isinstance(instance.gold, ClozeGold)]
    people = [name.split()[0] for key, name in world.names.items() if not key.startswith("assistant_")]
    whose = {first: cloze for cloze in clozes for first in people if first in cloze.query.split("\n")[0]}
    assert len(whose) >= 2

    def keeps_naming(option: int) -> World:
        """Each of those people says the right option (0) or a wrong one in every turn."""

        def said(turn: Turn) -> str:
            instance = whose.get(world.name(turn.speaker_id).split()[0])
            if instance is None or turn.speaker_id.startswith("assistant_"):
                return turn.text
            assert isinstance(instance.gold, ClozeGold)
            gold = instance.gold
            return f"{turn.text} {sorted(gold.options, key=lambda text: text != gold.answer_text)[option]}."

        return replace(retold(world, said), instances=tuple(whose.values()))

    right, wrong = (cloze_shortcuts([keeps_naming(option)]) for option in (0, 1))
    assert right is not None
    assert wrong is not None
    assert right.of_the_person == 1
    assert wrong.of_the_person == 0


def test_a_second_thing_of_the_same_name_is_found(world: World) -> None:
    """The finds of everybody turned into one object: each reference may then be to several."""
    facts = tuple(
        fact.model_copy(update={"value": {"type": "term", "text": "a tuba"}})
        if fact.attribute.startswith("find")
        else fact
        for fact in world.facts
    )
    instances = tuple(
        instance.model_copy(update={"gold": instance.gold.model_copy(update={"referent": "a tuba"})})
        if instance.family.value == "d2_anaphora"
        else instance
        for instance in world.instances
    )
    counts = ambiguous_references([replace(world, facts=facts, instances=instances)])
    assert counts is not None
    assert counts[0] > 0.5 * counts[1]


def test_a_date_by_the_week_is_found(world: World) -> None:
    """In evidence only, and not where it is told to the day."""
    cited = evidence_ids(world)

    def with_words(words: str) -> World:
        def said(turn: Turn) -> str:
            return f"{turn.text} That was {words}." if turn.turn_id in cited else turn.text

        return retold(world, said)

    vague, exact = vague_dates([with_words("two weeks ago")]), vague_dates([with_words("two weeks ago to the day")])
    assert vague is not None
    assert vague[0] == vague[1] > 0
    assert exact == (0, vague[1])
    lost_job = vague_dates([with_words("She lost her job, weeks ago, and told nobody")])
    assert lost_job == exact, "no date is told by it"
