"""Measures coherence by a language model: whether it prefers the true next turn, and bits per byte of the talk.

Sessions that were put together from unrelated lines would be as likely in any order; LoCoMo gives the reference.
"""

from __future__ import annotations

import math
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
"""Maximum pairs from one session; a second is used only after every session gave one."""
SCORED_TOKENS = 24
"""Maximum tokens scored of both turns, so that length cannot decide."""
WINDOW_BYTES = 500
"""Characters scored of a window (about 120 tokens), after at most ``CONTEXT_CHARACTERS`` of the same session."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A context, the turn that followed it, and a random turn of the same speaker from another session."""

    context: str
    true: str
    random: str


def pairs(worlds: Sequence[World], count: int, seed: int = 0) -> list[Pair]:
    """Draw ``count`` pairs, evenly over worlds and, within a world, over sessions; fewer if there are no more."""
    result: list[Pair] = []
    rng = random.Random(seed)  # noqa: S311 (a sample for a measure)
    sources = [_pairs_of(world, rng, seed) for world in worlds]
    while sources and len(result) < count:
        for source in list(sources):
            pair = next(source, None)
            if pair is None:
                sources.remove(source)
            elif len(result) < count:
                result.append(pair)
    return result


def _pairs_of(world: World, rng: random.Random, seed: int) -> Iterator[Pair]:
    """Yield context, true next turn and a turn of the same speaker from another session, one per session and round."""
    by_speaker: defaultdict[str, list[Turn]] = defaultdict(list)
    for session in world.sessions:
        for turn in session.turns:
            if len(words(turn.text)) >= LEAST_WORDS:
                by_speaker[turn.speaker_id].append(turn)
    order = [session for session in world.sessions if len(session.turns) > 2]
    rng.shuffle(order)
    for round_of_turns in range(ROUNDS):
        for session in order:
            positions = list(range(2, len(session.turns)))
            random.Random(f"{seed}:{session.session_id}").shuffle(positions)  # noqa: S311 (a sample for a measure)
            if round_of_turns >= len(positions):
                continue
            turn = session.turns[positions[round_of_turns]]
            others = [other for other in by_speaker[turn.speaker_id] if other.session_id != session.session_id]
            if len(words(turn.text)) < LEAST_WORDS or not others:
                continue
            last = session.turns[max(0, positions[round_of_turns] - CONTEXT_TURNS) : positions[round_of_turns]]
            context = "\n".join(f"{_first(world, earlier.speaker_id)}: {earlier.text}" for earlier in last)[
                -CONTEXT_CHARACTERS:
            ]
            yield Pair(f"{context}\n{_first(world, turn.speaker_id)}:", f" {turn.text}", f" {rng.choice(others).text}")


def _first(world: World, agent_id: str) -> str:
    return "Assistant" if agent_id.startswith("assistant_") else world.name(agent_id).split()[0]


def preference(model: ServerProcess, pairs: Sequence[Pair]) -> float:
    """Return the share of pairs whose true turn is likelier per token; ties count half. NaN for no pair."""
    wins = []
    for pair in pairs:
        true, other = (
            mean_log_probability(model, pair.context, tokens_of(model, text)[:SCORED_TOKENS])
            for text in (pair.true, pair.random)
        )
        wins.append(1.0 if true > other else 0.5 if true == other else 0.0)
    return statistics.fmean(wins) if wins else float("nan")


def windows(worlds: Sequence[World], count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Draw ``count`` stretches of talk from as many sessions, evenly over worlds, as (context, stretch)."""
    rng = random.Random(seed)  # noqa: S311 (a sample for a measure)
    sources = [_stretches(world, rng) for world in worlds]
    result: list[tuple[str, str]] = []
    while sources and len(result) < count:
        for source in list(sources):
            window = next(source, None)
            if window is None:
                sources.remove(source)
            elif len(result) < count:
                result.append(window)
    return result


def _stretches(world: World, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield, from sessions in random order, a context and the stretch of talk that follows it."""
    order = list(world.sessions)
    rng.shuffle(order)
    for session in order:
        talk = "\n".join(f"{_first(world, turn.speaker_id)}: {turn.text}" for turn in session.turns)
        starts = [
            position for position, letter in enumerate(talk) if letter.isspace() and position >= CONTEXT_CHARACTERS // 3
        ]
        starts = [position for position in starts if len(talk) - position >= WINDOW_BYTES]
        if not starts:
            continue
        start = rng.choice(starts)
        stretch = talk[start : talk.rfind(" ", start + 1, start + WINDOW_BYTES)]
        yield talk[max(0, start - CONTEXT_CHARACTERS) : start], stretch


def bits_per_byte(model: ServerProcess, windows: Sequence[tuple[str, str]]) -> float:
    """Return the mean over windows of the bits that the model needs per byte of UTF-8. NaN for no window."""
    needed = []
    for context, stretch in windows:
        tokens = tokens_of(model, stretch)
        bits = -mean_log_probability(model, context, tokens) * len(tokens) / math.log(2)
        needed.append(bits / len(stretch.encode()))
    return statistics.fmean(needed) if needed else float("nan")
