"""Runs the sampling process, which reads meters at a fixed rate and appends to a samples file until it is stopped.

``python -m memarena.meters.sampler --out FILE [--hz 10] METER…``; SIGTERM and SIGINT end it cleanly. In its own process
it keeps its rate whatever the run does, and adds no work to the process whose times are measured.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from memarena.meters.readings import MeterError, MeterFailedError
from memarena.meters.samples import SamplesWriter
from memarena.meters.sources import Source, open_sources

HZ = 10.0
"""Samples per second."""


class Clock(Protocol):
    """The sampler's source of time, which tests replace."""

    def now_ns(self) -> int:
        """Return CLOCK_MONOTONIC in ns."""

    def stopped_before(self, due_ns: int) -> bool:
        """Wait until ``due_ns`` and return False, or True as soon as the sampler must stop."""


class SignalClock:
    """The machine's clock; SIGTERM and SIGINT, which its creator must have blocked, mean stop."""

    signals = (signal.SIGTERM, signal.SIGINT)

    def now_ns(self) -> int:
        """Return CLOCK_MONOTONIC in ns."""
        return time.monotonic_ns()

    def stopped_before(self, due_ns: int) -> bool:
        """Wait until ``due_ns`` or for a signal; a pending signal is noticed even if ``due_ns`` is past."""
        return signal.sigtimedwait(self.signals, max(0, due_ns - time.monotonic_ns()) / 1e9) is not None


def sample_until_stopped(sources: Sequence[Source], writer: SamplesWriter, period_ns: int, clock: Clock) -> None:
    """Read every source at ``origin + k * period``. Ticks that a slow read has overrun are skipped, never shifted."""
    origin = clock.now_ns()
    writer.begin(period_ns, origin, time.time_ns())
    for source in sources:
        writer.source(source.name, source.channels, source.unavailable)
    writer.ready(clock.now_ns())
    open_now = [source for source in sources if source.channels]
    tick = 0
    while not clock.stopped_before(origin + tick * period_ns):
        for source in tuple(open_now):
            before = clock.now_ns()
            try:
                values = source.read()
            except MeterFailedError as error:
                writer.failed(source.name, clock.now_ns(), str(error))
                open_now.remove(source)
            else:
                writer.sample(source.name, tick, before, clock.now_ns(), values)
        tick = max(tick + 1, (clock.now_ns() - origin) // period_ns)
    writer.end(clock.now_ns())


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="memarena.meters.sampler")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--hz", type=float, default=HZ)
    parser.add_argument("meters", nargs="+")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if stopped by a signal, 2 with a line on standard error if the meters or the file cannot be used."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SignalClock.signals)
    arguments = _arguments(argv)
    try:
        if not 0.1 <= arguments.hz <= 100:
            raise MeterError(f"--hz {arguments.hz}: expected 0.1 to 100")
        sources = open_sources(arguments.meters)
        try:
            with SamplesWriter(arguments.out) as writer:
                sample_until_stopped(sources, writer, round(1e9 / arguments.hz), SignalClock())
        finally:
            for source in sources:
                source.close()
    except MeterError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
