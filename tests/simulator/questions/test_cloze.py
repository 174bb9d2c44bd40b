"""Cloze questions: neither the order nor the number of mentions gives the right option away, and D4 is unambiguous."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_dataset_quality.history_shortcuts import ambiguous_references, cloze_shortcuts, vague_dates
from memarena_dataset_quality.world import World, read_world
from memarena_masim.config import preset
from memarena_masim.facts.values import day_words

from ...support.small_worlds import WorldOf


@pytest.fixture(scope="module")
def worlds(small_world: Path, other_small_worlds: list[Path], world_of: WorldOf) -> list[World]:
    """Worlds of two sizes."""
    tiny = [world_of(preset("tiny", seed)) for seed in range(111, 119)]
    return [read_world(folder) for folder in (small_world, *other_small_worlds, *tiny)]


def test_neither_the_last_nor_the_most_often_mentioned_option_is_right_by_more_than_chance(worlds: list[World]) -> None:
    """A fifth of the questions by chance; over a hundred questions a quarter is within reach of it."""
    found = cloze_shortcuts(worlds)
    assert found is not None
    assert found.questions >= 100
    assert found.last <= 0.27
    assert found.most_often <= 0.27


def test_a_reference_is_to_the_only_thing_of_its_name(worlds: list[World]) -> None:
    """No ego that is asked heard of another find with the same object."""
    found = ambiguous_references(worlds)
    assert found is not None
    assert found[1] >= 50
    assert found[0] == 0


def test_dates_are_told_to_the_day(worlds: list[World]) -> None:
    """No temporal question rests on "three weeks ago", which may be any day of a week."""
    found = vague_dates(worlds)
    assert found is not None
    assert found[1] >= 50
    assert found[0] == 0


def test_whole_weeks_are_said_to_the_day() -> None:
    """As the words of an earlier day are made."""
    from datetime import date

    said_on = date(2025, 3, 29)
    assert day_words(said_on, date(2025, 3, 8)) == "three weeks ago to the day"
    assert day_words(said_on, date(2025, 3, 22)) == "a week ago to the day"
    assert day_words(said_on, date(2025, 3, 1)) == "on March 1"
