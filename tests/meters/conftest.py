"""Fixture: samples files made from signals with a known integral, on a clock that the test controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from memarena.meters.readings import Channel, Reading, Unavailable
from memarena.meters.samples import Samples, SamplesWriter, read_samples

PERIOD_NS = 100_000_000
ORIGIN_NS = 7_000_000_000_000
WATT = Channel("gpu_power", "W")


class Recorded(Protocol):
    def __call__(
        self,
        signal: Callable[[float], float],
        seconds: float,
        *,
        left_out: Iterable[int] = (),
        late_ms: Sequence[float] = (0.0,),
        channel: Channel = WATT,
        counter: Callable[[float], float] | None = None,
        unavailable: Sequence[Unavailable] = (),
        fails_at_s: float | None = None,
        unreadable: dict[int, str] | None = None,
    ) -> Samples: ...


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Return a function that records a signal (seconds to value) at 10 Hz, from -1 s to 1 s after ``seconds``."""
    count = 0

    def record(
        signal: Callable[[float], float],
        seconds: float,
        *,
        left_out: Iterable[int] = (),
        late_ms: Sequence[float] = (0.0,),
        channel: Channel = WATT,
        counter: Callable[[float], float] | None = None,
        unavailable: Sequence[Unavailable] = (),
        fails_at_s: float | None = None,
        unreadable: dict[int, str] | None = None,
    ) -> Samples:
        nonlocal count
        count += 1
        path = tmp_path / f"{count}.csv"
        skipped = set(left_out)
        channels = [channel] if counter is None else [channel, Channel("gpu_energy", "J")]
        with SamplesWriter(path) as writer:
            writer.begin(PERIOD_NS, ORIGIN_NS - 1_000_000_000, 0)
            writer.source("meter", channels, unavailable)
            for tick in range(round(seconds * 10) + 20):
                time_ns = ORIGIN_NS - 10 * PERIOD_NS + tick * PERIOD_NS + round(late_ms[tick % len(late_ms)] * 1e6)
                time_s = (time_ns - ORIGIN_NS) / 1e9
                if fails_at_s is not None and time_s >= fails_at_s:
                    writer.failed("meter", time_ns, "GPU is lost")
                    break
                values: list[Reading | Unavailable] = [Reading(channel, signal(time_s))]
                if counter is not None:
                    values.append(Reading(channels[1], counter(time_s)))
                if unreadable and tick - 10 in unreadable:
                    values = [Unavailable(c, unreadable[tick - 10]) for c in channels]
                if tick - 10 not in skipped:
                    writer.sample("meter", tick, time_ns - 50_000, time_ns + 50_000, values)
        return read_samples(path)

    return record
