"""Tests the measure of sentences that an ego met before: who counts, which sentences count, and what is masked.

If an ego heard the same sentences again and again, its history would be padding, and a memory could drop it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from memarena_dataset_quality.met_before import masked, met_before
from memarena_dataset_quality.world import World, read_world


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("We met Helga near the mill.", "We met Bruno near the mill.", True),
        ("It was 14 euros in all.", "It was 9 euros in all.", True),
        ("It was at 9:15 am.", "It was at 10:30 am.", True),
        ("I know that I'm late.", "I know that you are late.", False),
        ("We met Helga near the mill.", "We met Helga near the weir.", False),
        ("Nobody came to us.", "nobody came to us!", True),
    ],
)
def test_names_and_numbers_are_masked(first: str, second: str, same: bool) -> None:
    assert (masked(first) == masked(second)) is same


def test_only_what_the_same_person_met_counts(world: World) -> None:
    """A corpus said twice over is met before by half; days that a world does not have are not measured."""
    figures = met_before([world], None)
    assert figures is not None
    assert 0 < figures.share < 0.6
    later = tuple(
        session.model_copy(update={"session_id": f"{session.session_id}-again"}) for session in world.sessions
    )
    twice = met_before([replace(world, sessions=(*world.sessions, *later))], None)
    assert twice is not None
    assert twice.sentences == 2 * figures.sentences
    assert twice.repeated == figures.repeated + figures.sentences
    assert met_before([world], world.day_count + 1) is None
    first_day = met_before([world], 1)
    assert first_day is not None
    assert first_day.sentences < figures.sentences


def test_a_person_who_hears_each_sentence_once_met_none_before(world: World) -> None:
    """What two other people say to each other was not met."""
    session = next(
        candidate
        for candidate in world.sessions
        if not any(who.startswith("assistant_") for who in candidate.participants)
    )
    turns = tuple(
        turn.model_copy(update={"text": f"{number * 'very '}much was said by all of us."})
        for number, turn in enumerate(session.turns)
    )
    session = session.model_copy(update={"turns": turns})
    figures = met_before([replace(world, sessions=(session,))], None)
    assert figures is not None
    assert figures.repeated == 0
    others = session.model_copy(update={"participants": ("another_person", "a_third_person")})
    apart = met_before([replace(world, sessions=(session, others))], None)
    assert apart is not None
    assert apart.repeated == 0
