"""Coherence as a language model sees it: the true next turn against a random one, and bits per byte of the talk."""

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
"""Turns that one session can give, the second only after every session gave one."""
SCORED_TOKENS = 24
"""Both turns are read up to this many tokens, so that length cannot decide."""
WINDOW_BYTES = 500
"""What is scored of a window, about 120 tokens, after at most ``CONTEXT_CHARACTERS`` of the same session."""


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


def windows(worlds: Sequence[World], count: int, seed: int = 0) -> list[tuple[str, str]]:
    """``count`` stretches of talk from as many sessions, evenly over worlds: what was said before, and the stretch."""
    rng = random.Random(seed)  # noqa: S311 (a sample for a measure)
    drawers = [_stretches(world, rng) for world in worlds]
    found: list[tuple[str, str]] = []
    while drawers and len(found) < count:
        for drawer in list(drawers):
            window = next(drawer, None)
            if window is None:
                drawers.remove(drawer)
            elif len(found) < count:
                found.append(window)
    return found


def _stretches(world: World, rng: random.Random) -> Iterator[tuple[str, str]]:
    order = list(world.sessions)
    rng.shuffle(order)
    for session in order:
        talk = "\n".join(f"{_first(world, turn.speaker_id)}: {turn.text}" for turn in session.turns)
        starts = [place for place, letter in enumerate(talk) if letter.isspace() and place >= CONTEXT_CHARACTERS // 3]
        starts = [place for place in starts if len(talk) - place >= WINDOW_BYTES]
        if not starts:
            continue
        start = rng.choice(starts)
        stretch = talk[start : talk.rfind(" ", start + 1, start + WINDOW_BYTES)]
        yield talk[max(0, start - CONTEXT_CHARACTERS) : start], stretch


def bits_per_byte(model: ServerProcess, found: Sequence[tuple[str, str]]) -> float:
    """Mean over windows of the bits that the model needs for a byte of UTF-8. NaN for no window."""
    needed = []
    for context, stretch in found:
        tokens = tokens_of(model, stretch)
        bits = -mean_log_probability(model, context, tokens) * len(tokens) / math.log(2)
        needed.append(bits / len(stretch.encode()))
    return statistics.fmean(needed) if needed else float("nan")
