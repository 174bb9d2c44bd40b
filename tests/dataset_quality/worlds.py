"""Worlds for the tests of measures: generated once, and changed so that a measure detects a planted flaw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memarena_dataset.model import Turn
from memarena_dataset_quality.world import World


def retold(world: World, words: Callable[[Turn], str]) -> World:
    """The same world with other words in its turns."""
    sessions = tuple(
        session.model_copy(
            update={"turns": tuple(turn.model_copy(update={"text": words(turn)}) for turn in session.turns)}
        )
        for session in world.sessions
    )
    return replace(world, sessions=sessions)


def evidence_ids(world: World) -> frozenset[str]:
    """Turns that some question rests on."""
    return frozenset(turn_id for instance in world.instances for turn_id in instance.evidence_turn_ids)


def asked_ids(world: World) -> frozenset[str]:
    """Turns that state a fact which is asked after."""
    return frozenset(fact.turn_id for fact in world.facts if fact.asked)
