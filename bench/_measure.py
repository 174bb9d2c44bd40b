"""Times two sides of a comparison in turn, so that other load of the machine affects both equally."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence


def interleaved(sides: Sequence[Callable[[int], object]], rounds: int, warm_up: int) -> list[list[int]]:
    """Time ``side(round)`` for every side, called in turn; return nanoseconds by side, without ``warm_up`` rounds."""
    spans: list[list[int]] = [[] for _ in sides]
    for number in range(warm_up + rounds):
        for side, side_spans in zip(sides, spans, strict=True):
            began = time.perf_counter_ns()
            side(number)
            took = time.perf_counter_ns() - began
            if number >= warm_up:
                side_spans.append(took)
    return spans


def percentile(spans: Sequence[int], share: float) -> int:
    """Return the smallest span that at least ``share`` of all spans do not exceed (nearest rank)."""
    return sorted(spans)[max(math.ceil(share * len(spans)) - 1, 0)]
