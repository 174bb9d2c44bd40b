"""Turns that stand out: told apart by a mark that only they hold, and not without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_dataset_quality import specific_turns
from memarena_dataset_quality.specific_turns import digits, evidence_turns, planned_turns, told_apart
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
    plain = told_apart(worlds[1:], worlds[:1], planned_turns)
    given_away = told_apart([marked(world) for world in worlds[1:]], [marked(worlds[0])], planned_turns)
    assert plain is not None and given_away is not None
    assert given_away > plain
    assert given_away > 0.99


def test_names_and_digits_give_nothing_away(worlds: list[World]) -> None:
    """They are masked: other names and numbers leave the figure as it is."""
    names = {part for name in worlds[0].names.values() for part in name.split()}
    first, second = sorted(names)[:2]
    other = retold(worlds[0], lambda turn: turn.text.replace(first, second).replace("7", "9"))
    for chosen in (planned_turns, evidence_turns):
        assert told_apart(worlds[1:], [other], chosen) == told_apart(worlds[1:], worlds[:1], chosen)


def test_digits_are_counted_in_both_kinds_of_turns(worlds: list[World]) -> None:
    found = digits(worlds)
    assert found is not None
    assert 0 < found.others < 1
    bare = retold(worlds[0], lambda turn: turn.text if turn.turn_id in planned_turns(worlds[0]) else "Well.")
    none = digits([bare])
    assert none is not None
    assert none.others == 0


def test_without_such_turns_nothing_is_measured(worlds: list[World]) -> None:
    assert told_apart(worlds[1:], worlds[:1], lambda _: frozenset()) is None
