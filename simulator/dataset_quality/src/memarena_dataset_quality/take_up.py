"""Measures how often a turn shares a content word with the turn before it, and how often it would by chance.

In a conversation, turns answer each other; lines that were drawn one by one would share words only by chance.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from memarena_dataset.model import Turn

from memarena_dataset_quality.solver.evidence import stem
from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World

_STOP_WORDS = frozenset(
    files("memarena_dataset_quality").joinpath("lexicons/stop_words.v1.txt").read_text(encoding="utf-8").split()
)


@dataclass(frozen=True, slots=True)
class TakeUp:
    """Shares of turns that have a content word in common with another turn.

    ``before``: with the turn before; ``random``: with a random turn of that turn's speaker from another session.
    """

    turns: int
    before: float
    random: float

    @property
    def above_chance(self) -> float:
        """Return ``before`` minus ``random``: long turns share words with any other turn."""
        return self.before - self.random


def take_up(worlds: Sequence[World], seed: int = 0) -> TakeUp | None:
    """Measure all turns except for the first of a session, ignoring names of people. None if there is no such turn."""
    rng = random.Random(seed)  # noqa: S311 (a sample for a measure)
    before = by_chance = turns = 0
    for world in worlds:
        names = frozenset(stem(word) for name in world.names.values() for word in words(name))
        content = {turn.turn_id: _content(turn) - names for session in world.sessions for turn in session.turns}
        turns_of: defaultdict[str, list[Turn]] = defaultdict(list)
        for session in world.sessions:
            for turn in session.turns:
                turns_of[turn.speaker_id].append(turn)
        for session in world.sessions:
            for earlier, turn in zip(session.turns, session.turns[1:], strict=False):
                other = _elsewhere(turns_of[earlier.speaker_id], session.session_id, rng)
                if other is None:
                    continue
                turns += 1
                before += not content[turn.turn_id].isdisjoint(content[earlier.turn_id])
                by_chance += not content[turn.turn_id].isdisjoint(content[other.turn_id])
    return TakeUp(turns, before / turns, by_chance / turns) if turns else None


def _elsewhere(turns: Sequence[Turn], session_id: str, rng: random.Random) -> Turn | None:
    """Draw a turn of another session; None if eight draws give none."""
    draws = (rng.choice(turns) for _ in range(8))
    return next((turn for turn in draws if turn.session_id != session_id), None)


def _content(turn: Turn) -> frozenset[str]:
    return frozenset(stem(word) for word in words(turn.text) if word not in _STOP_WORDS and len(word) > 1)
