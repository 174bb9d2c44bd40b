"""Tests that mentions do not give cloze answers (D1) away, and that references (D4) are unambiguous."""

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


def test_guessing_the_last_or_the_most_frequent_option_is_no_better_than_chance(worlds: list[World]) -> None:
    """Chance is 0.2; over 176 questions its standard error is 0.03, so that 0.30 is within its variation."""
    result = cloze_shortcuts(worlds)
    assert result is not None
    assert result.questions >= 100
    assert result.last <= 0.30
    assert result.most_often <= 0.27


def test_no_ego_heard_of_another_find_with_the_same_name(worlds: list[World]) -> None:
    """So a reference has one possible antecedent."""
    result = ambiguous_references(worlds)
    assert result is not None
    assert result[1] >= 50
    assert result[0] == 0


def test_dates_of_temporal_questions_are_exact_to_the_day(worlds: list[World]) -> None:
    """None rests on "three weeks ago", which may be any day of a week."""
    result = vague_dates(worlds)
    assert result is not None
    assert result[1] >= 50
    assert result[0] == 0


def test_day_words_say_to_the_day_for_whole_weeks() -> None:
    """``day_words`` gives the words of an earlier day."""
    from datetime import date

    said_on = date(2025, 3, 29)
    assert day_words(said_on, date(2025, 3, 8)) == "three weeks ago to the day"
    assert day_words(said_on, date(2025, 3, 22)) == "a week ago to the day"
    assert day_words(said_on, date(2025, 3, 1)) == "on March 1"
