"""Tests measures of shortcuts to D6, each planted in a world, and the reading of wishes from their text alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from memarena_dataset.gold import PermissionGold
from memarena_dataset.model import Instance
from memarena_dataset_quality.permission_reading import is_read_as_wish, read_wishes, wish_forms
from memarena_dataset_quality.permission_shortcuts import guessed_actions, permission_shortcuts
from memarena_dataset_quality.world import World, read_world
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.pack import PackHalf
from memarena_masim.phrases.grammar import Bank, wordings

from .worlds import retold


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


def acting(world: World, tells: Callable[[Instance, PermissionGold], bool]) -> World:
    """The world with other golds."""

    def changed(instance: Instance) -> Instance:
        if not isinstance(instance.gold, PermissionGold):
            return instance
        action = "disclose" if tells(instance, instance.gold) else "withhold"
        return instance.model_copy(update={"gold": instance.gold.model_copy(update={"expected_action": action})})

    return replace(world, instances=tuple(changed(instance) for instance in world.instances))


def test_whoever_looks_at_the_fact_alone_has_a_j_of_nothing(world: World) -> None:
    """By construction: each fact is asked as often by one who may know as by one who may not."""
    shortcuts = permission_shortcuts([world])
    assert shortcuts is not None
    assert (shortcuts.wish_alone, shortcuts.always, shortcuts.crossed) == (0, 0, 1)


def test_policies_that_see_one_thing_are_weighed(world: World, other_small_worlds: list[Path]) -> None:
    """Where the action follows the wish, the wish is worth everything; where it follows the asker, the asker is.

    In one small world, each wish may happen to come with one kind of asker; not so in several.
    """
    wish = permission_shortcuts([acting(world, lambda _, gold: gold.permission_level == "public")])
    friends = ("close friend", "friend")
    worlds = [world, *map(read_world, other_small_worlds)]
    asker = permission_shortcuts(
        [
            acting(one_world, lambda instance, _: instance.metadata.get("relationship") in friends)
            for one_world in worlds
        ]
    )
    assert wish is not None
    assert asker is not None
    assert wish.wish_alone == asker.asker_alone == 1
    assert wish.crossed == 0
    assert asker.wish_alone < 1
    nobody = tuple(instance for instance in world.instances if not isinstance(instance.gold, PermissionGold))
    assert permission_shortcuts([replace(world, instances=nobody)]) is None


def test_what_the_asker_is_can_be_learned_from_other_worlds(world: World) -> None:
    friends = ("close friend", "friend")
    telling = acting(world, lambda instance, _: instance.metadata.get("relationship") in friends)
    shares = guessed_actions([telling], [telling])
    assert shares is not None
    assert shares[0] > shares[1]


def test_actions_follow_from_the_words(world: World) -> None:
    readings = read_wishes([world])
    assert readings.items >= 20
    assert not readings.misses


def test_forms_of_wishes_are_counted_whoever_they_name(world: World) -> None:
    assert wish_forms(world) >= 10

    def plain(text: str) -> str:
        return re.sub(r"(?<=[.?!]) [^.?!]*\b(?:know|hear|tell|share|secret|asks?|keep quiet)\b[^.?!]*", "", text)

    secret = retold(world, lambda turn: f"{plain(turn.text)} Please keep it to yourself.")
    assert wish_forms(secret) < wish_forms(world) / 2


def test_what_is_added_to_a_fact_is_read_as_no_wish() -> None:
    bank = catalogue(PackHalf()).bank

    assert not read_as_wishes(bank, "more.")
    assert not read_as_wishes(bank, "why.")
    assert read_as_wishes(bank, "level.private")


def read_as_wishes(bank: Bank, start: str) -> list[str]:
    """Sentences of the rules whose names start so that the reading rules take for a wish."""
    lines = [line for name, rule in bank.rules.items() if name.startswith(start) for line in rule.alternatives]
    sentences = {sentence for line in lines for text in wordings(line) for sentence in re.split(r"(?<=[.?!]) ", text)}
    return sorted(sentence for sentence in sentences if is_read_as_wish(sentence))


def test_a_wish_in_other_words_has_another_action(world: World) -> None:
    """The reading depends on the words: without every "not" and "nobody" it goes wrong."""

    def soft(text: str) -> str:
        for word in (
            "n't",
            "keep",
            "only",
            "just",
            "secret",
            "private",
            "between",
            "nobody else",
            "no one else",
            " not ",
            "everybody else",
            "everyone else",
            "nobody",
            "no one",
        ):
            text = text.replace(word, " ")
        return text

    assert read_wishes([retold(world, lambda turn: soft(turn.text))]).right < read_wishes([world]).right
