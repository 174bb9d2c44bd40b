"""Tests the measure of specific turns: a mark that only they have gives them away, and nothing else does.

A turn is *specific* if it states a fact that a question may ask for. If such turns stood out by their words, a memory
could store them alone and skip the rest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from memarena_dataset_quality import specific_turns
from memarena_dataset_quality.specific_turns import area_apart, area_within, digits, evidence_turns, planned_turns
from memarena_dataset_quality.world import World, read_world

from .worlds import retold


@pytest.fixture(scope="module")
def worlds(small_world: Path, other_small_worlds: list[Path]) -> list[World]:
    """Three small worlds, read."""
    return [read_world(folder) for folder in (small_world, *other_small_worlds)]


@pytest.fixture(autouse=True)
def fewer_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the turns that a real table learns from: what is asked here shows with them too."""
    monkeypatch.setattr(specific_turns, "LEARNED_FROM", 1_500)


def marked(world: World) -> World:
    chosen = planned_turns(world)
    return retold(world, lambda turn: f"Verily, {turn.text}" if turn.turn_id in chosen else turn.text)


def test_a_word_that_only_such_turns_hold_gives_them_away(worlds: list[World]) -> None:
    plain = area_apart(worlds[1:], worlds[:1], planned_turns)
    given_away = area_apart([marked(world) for world in worlds[1:]], [marked(worlds[0])], planned_turns)
    assert plain is not None and given_away is not None
    assert given_away > plain
    assert given_away > 0.99


def joined(worlds: list[World], people: list[tuple[str, str]]) -> World:
    """One world of all sessions; those that came from a world are between these two people."""
    sessions = [
        session.model_copy(update={"participants": pair})
        for world, pair in zip(worlds, people, strict=True)
        for session in world.sessions
    ]
    facts = tuple(fact for world in worlds for fact in world.facts)
    return replace(worlds[0], sessions=tuple(sessions), facts=facts, instances=())


def test_conversations_of_one_data_set_are_each_measured_on_the_others(worlds: list[World]) -> None:
    talks = joined([marked(world) for world in worlds], [("a", "b"), ("c", "d"), ("e", "f")])
    area = area_within(talks, planned_turns)
    assert area is not None
    assert area > 0.99
    assert area_within(joined(worlds, [("a", "b"), ("c", "d"), ("a", "e")]), planned_turns) is None
    assert area_within(joined(worlds[:1], [("a", "b")]), planned_turns) is None


def test_names_and_digits_give_nothing_away(worlds: list[World]) -> None:
    """They are masked: other names and numbers leave the figure as it is."""
    names = {part for name in worlds[0].names.values() for part in name.split()}
    first, second = sorted(names)[:2]
    other = retold(worlds[0], lambda turn: turn.text.replace(first, second).replace("7", "9"))
    for chosen in (planned_turns, evidence_turns):
        assert area_apart(worlds[1:], [other], chosen) == area_apart(worlds[1:], worlds[:1], chosen)


def test_digits_are_counted_in_both_kinds_of_turns(worlds: list[World]) -> None:
    shares = digits(worlds)
    assert shares is not None
    assert 0 < shares.others < 1
    bare = retold(worlds[0], lambda turn: turn.text if turn.turn_id in planned_turns(worlds[0]) else "Well.")
    none = digits([bare])
    assert none is not None
    assert none.others == 0


def test_without_such_turns_nothing_is_measured(worlds: list[World]) -> None:
    assert area_apart(worlds[1:], worlds[:1], lambda _: frozenset()) is None
