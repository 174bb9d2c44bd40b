"""Coherence: how often a language model prefers the true next turn to a random turn of the same speaker."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memarena_dataset.model import Turn

from memarena_dataset_quality.embedded_model import mean_log_probability, tokens_of
from memarena_dataset_quality.server_process import ServerProcess
from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World

LEAST_WORDS = 8
CONTEXT_TURNS = 4
CONTEXT_CHARACTERS = 900
ROUNDS = 5
"""Turns that one session can give, the second only after every session gave one."""
SCORED_TOKENS = 24
"""Both turns are read up to this many tokens, so that length cannot decide."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What was said before, the turn that followed, and a turn of the same speaker from another session."""

    context: str
    true: str
    random: str


def pairs(worlds: Sequence[World], count: int, seed: int = 0) -> list[Pair]:
    """``count`` pairs, drawn evenly over worlds, and within a world over all sessions. Fewer if there are no more."""
    found: list[Pair] = []
    rng = random.Random(seed)  # noqa: S311 (a sample for a measure)
    drawers = [_drawn(world, rng, seed) for world in worlds]
    while drawers and len(found) < count:
        for drawer in list(drawers):
            pair = next(drawer, None)
            if pair is None:
                drawers.remove(drawer)
            elif len(found) < count:
                found.append(pair)
    return found


def _drawn(world: World, rng: random.Random, seed: int) -> Iterator[Pair]:
    by_speaker: defaultdict[str, list[Turn]] = defaultdict(list)
    for session in world.sessions:
        for turn in session.turns:
            if len(words(turn.text)) >= LEAST_WORDS:
                by_speaker[turn.speaker_id].append(turn)
    order = [session for session in world.sessions if len(session.turns) > 2]
    rng.shuffle(order)
    for round_of_turns in range(ROUNDS):
        for session in order:
            places = list(range(2, len(session.turns)))
            random.Random(f"{seed}:{session.session_id}").shuffle(places)  # noqa: S311 (a sample for a measure)
            if round_of_turns >= len(places):
                continue
            turn = session.turns[places[round_of_turns]]
            others = [one for one in by_speaker[turn.speaker_id] if one.session_id != session.session_id]
            if len(words(turn.text)) < LEAST_WORDS or not others:
                continue
            last = session.turns[max(0, places[round_of_turns] - CONTEXT_TURNS) : places[round_of_turns]]
            context = "\n".join(f"{_first(world, one.speaker_id)}: {one.text}" for one in last)[-CONTEXT_CHARACTERS:]
            yield Pair(f"{context}\n{_first(world, turn.speaker_id)}:", f" {turn.text}", f" {rng.choice(others).text}")


def _first(world: World, agent_id: str) -> str:
    return "Assistant" if agent_id.startswith("assistant_") else world.name(agent_id).split()[0]


def preference(model: ServerProcess, found: Sequence[Pair]) -> float:
    """Share of pairs whose true turn the model finds likelier, per token; ties count half. NaN for no pair."""
    wins = []
    for pair in found:
        true, other = (
            mean_log_probability(model, pair.context, tokens_of(model, text)[:SCORED_TOKENS])
            for text in (pair.true, pair.random)
        )
        wins.append(1.0 if true > other else 0.5 if true == other else 0.0)
    return statistics.fmean(wins) if wins else float("nan")
