"""Whether position or length betrays evidence: its position in the session, and how long it is."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.world import World


@dataclass(frozen=True, slots=True)
class PositionFigures:
    """``worst_decile``: largest share of evidence turns in one tenth of the session. ``length_ratio``: of medians."""

    worst_decile: float
    length_ratio: float


def position_figures(worlds: Iterable[World]) -> PositionFigures | None:
    """Evidence of all worlds together. None where no question cites a turn."""
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
