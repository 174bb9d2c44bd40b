"""Tests the measure of taking up: above chance for real talk, nothing for shuffled turns, all for echoes.

A turn *takes up* the turn before it if it shares a content word with it. Generated talk in which no turn does would be
monologues; the measure counts only what is above chance, since any two turns of a topic share words.
"""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from memarena_dataset.model import Turn
from memarena_dataset_quality.take_up import take_up
from memarena_dataset_quality.world import World, read_world

from tests.dataset_quality.worlds import retold


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


def test_talk_in_another_order_takes_nothing_up(world: World) -> None:
    """Each speaker's turns are shuffled over all sessions: they share no more words than by chance."""
    original = take_up([world])
    texts_by_speaker: dict[str, list[str]] = {}
    for session in world.sessions:
        for turn in session.turns:
            texts_by_speaker.setdefault(turn.speaker_id, []).append(turn.text)
    rng = random.Random(3)
    for texts in texts_by_speaker.values():
        rng.shuffle(texts)
    mixed = take_up([retold(world, lambda turn: texts_by_speaker[turn.speaker_id].pop())])
    assert original is not None
    assert mixed is not None
    assert original.above_chance > 0.2
    assert abs(mixed.above_chance) < 0.05


def test_echoes_and_small_talk_are_the_ends(world: World) -> None:
    """Turns that all say something of their own have nothing in common; names and common words count for nothing."""
    number = iter(range(1_000_000))

    def own(turn: Turn) -> str:
        return f"Oh yes {world.name(turn.speaker_id)}, I really think so, w{next(number)} it was."

    alone = take_up([retold(world, own)])
    assert alone is not None
    assert alone.before == 0.0
    assert alone.random < 0.001  # a random turn of a speaker may be the turn itself
    echo = take_up([retold(world, lambda turn: f"the {turn.session_id.replace('_', '')} again")])
    assert echo is not None
    assert (echo.before, echo.random) == (1.0, 0.0)


def test_no_turn_after_another_is_nothing_to_measure(world: World) -> None:
    """The result is None, not a share of 0."""
    assert take_up([dataclasses.replace(world, sessions=())]) is None
