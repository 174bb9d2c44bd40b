"""Shortcuts to D6, each planted in a world, and the reading of wishes from their words alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from memarena_dataset.gold import PermissionGold
from memarena_dataset.model import Instance
from memarena_dataset_quality.permission_reading import read_wishes
from memarena_dataset_quality.permission_shortcuts import guessed_actions, permission_shortcuts
from memarena_dataset_quality.world import World, read_world

from .worlds import retold


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


def acting(world: World, tells: Callable[[Instance, PermissionGold], bool]) -> World:
    """The world with other golds."""

    def changed(one: Instance) -> Instance:
        if not isinstance(one.gold, PermissionGold):
            return one
        action = "disclose" if tells(one, one.gold) else "withhold"
        return one.model_copy(update={"gold": one.gold.model_copy(update={"expected_action": action})})

    return replace(world, instances=tuple(changed(one) for one in world.instances))


def test_whoever_looks_at_the_fact_alone_has_a_j_of_nothing(world: World) -> None:
    """By construction: each fact is asked as often by one who may know as by one who may not."""
    found = permission_shortcuts([world])
    assert found is not None
    assert (found.wish_alone, found.always, found.crossed) == (0, 0, 1)


def test_policies_that_see_one_thing_are_weighed(world: World) -> None:
    """Where the action follows the wish, the wish is worth everything; where it follows the asker, the asker is."""
    wish = permission_shortcuts([acting(world, lambda _, gold: gold.permission_level == "public")])
    friends = ("close friend", "friend")
    asker = permission_shortcuts([acting(world, lambda one, _: one.metadata.get("relationship") in friends)])
    assert wish is not None
    assert asker is not None
    assert wish.wish_alone == asker.asker_alone == 1
    assert wish.crossed == 0
    assert asker.wish_alone < 1
    nobody = tuple(one for one in world.instances if not isinstance(one.gold, PermissionGold))
    assert permission_shortcuts([replace(world, instances=nobody)]) is None


def test_what_the_asker_is_can_be_learned_from_other_worlds(world: World) -> None:
    friends = ("close friend", "friend")
    telling = acting(world, lambda one, _: one.metadata.get("relationship") in friends)
    found = guessed_actions([telling], [telling])
    assert found is not None
    assert found[0] > found[1]


def test_actions_follow_from_the_words(world: World) -> None:
    found = read_wishes([world])
    assert found.items >= 20
    assert not found.misses


def test_a_wish_in_other_words_has_another_action(world: World) -> None:
    """The reading hangs on the words: with every "not" and "nobody" gone it goes wrong."""

    def soft(text: str) -> str:
        for word in ("nobody else", "no one else", " not ", "everybody else", "everyone else", "nobody", "no one"):
            text = text.replace(word, " ")
        return text

    assert read_wishes([retold(world, lambda turn: soft(turn.text))]).right < read_wishes([world]).right
