"""Measures whether evidence turns stand out by their position in the session or by their length."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World


@dataclass(frozen=True, slots=True)
class PositionFigures:
    """``worst_decile`` is the largest share of evidence turns that lie in one tenth of their session.

    ``length_ratio`` is the median number of words of evidence turns, divided by that of other turns.
    """

    worst_decile: float
    length_ratio: float


def position_figures(worlds: Iterable[World]) -> PositionFigures | None:
    """Compute the figures over the evidence of all worlds. None if no question cites a turn, or all turns are cited."""
    deciles: Counter[int] = Counter()
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for world in worlds:
        evidence = {turn_id for instance in world.instances for turn_id in instance.evidence_turn_ids}
        for session in world.sessions:
            for turn in session.turns:
                cited = turn.turn_id in evidence
                lengths[cited].append(len(words(turn.text)))
                if cited:
                    deciles[min(9, int(10 * world.places[turn.turn_id]))] += 1
    if not deciles or not lengths[False]:
        return None
    return PositionFigures(
        max(deciles.values()) / deciles.total(), statistics.median(lengths[True]) / statistics.median(lengths[False])
    )
