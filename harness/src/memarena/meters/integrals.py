"""Integrates samples over a window of time, and states the reason if they do not suffice for it.

An integral over a gap would be a guess that looks like a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memarena.meters.readings import MeterError
from memarena.meters.samples import Nanoseconds, Series, Values

MAX_GAP_MS = 300.0
"""Longest time between two samples: three periods at the usual ten samples a second."""
MAX_MISSING = 0.01
"""Largest share of the expected samples that may be missing."""


@dataclass(frozen=True)
class Window:
    """A span of CLOCK_MONOTONIC, in ns; not empty."""

    start_ns: int
    end_ns: int

    def __post_init__(self) -> None:
        """Raise :class:`~memarena.meters.readings.MeterError` for a span that ends before it begins."""
        if self.end_ns <= self.start_ns:
            raise MeterError(f"a window from {self.start_ns} to {self.end_ns} ns is empty")

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return (self.end_ns - self.start_ns) / 1e9


def _edges(times_ns: Nanoseconds, window: Window) -> tuple[int, int]:
    """Return indices of the last sample not after the start and of the first not before the end (may be n)."""
    first = int(np.searchsorted(times_ns, window.start_ns, side="right")) - 1
    return first, int(np.searchsorted(times_ns, window.end_ns, side="left"))


def at(times_ns: Nanoseconds, values: Values, moment_ns: int) -> float:
    """Return the value at a moment between two samples by linear interpolation."""
    return float(np.interp(0.0, (times_ns - moment_ns).astype(np.float64), values))


def integral(times_ns: Nanoseconds, values: Values, window: Window) -> float:
    """Return the integral over ``window`` in units of the values times seconds: W become J.

    Uses trapezoids between samples, with the values at both edges interpolated. ``times_ns`` (n,) must grow and reach
    both edges. Raises ValueError if not.
    """
    first, last = _edges(times_ns, window)
    if first < 0 or last >= len(times_ns):
        raise ValueError("the samples do not reach both edges of the window")
    inner = (times_ns > window.start_ns) & (times_ns < window.end_ns)
    # Times relative to the start are small numbers, which floats hold without loss.
    seconds = (times_ns[inner] - window.start_ns) / 1e9
    left, right = (at(times_ns, values, edge) for edge in (window.start_ns, window.end_ns))
    heights = np.concatenate(([left], values[inner], [right]))
    return float(np.trapezoid(heights, np.concatenate(([0.0], seconds, [window.duration_s]))))


def fault(series: Series, window: Window, period_ns: int) -> str | None:
    """Return why the samples do not suffice for a figure over ``window``, or None if they do.

    The reasons: the meter failed before the end of the window; the samples do not reach both edges; there are more than
    ``MAX_GAP_MS`` between two samples; more than ``MAX_MISSING`` of the samples expected by ``period_ns`` are missing.
    """
    name, times = series.channel.name, series.times_ns
    if series.failed is not None and series.failed.at_ns <= window.end_ns:
        when = (series.failed.at_ns - window.start_ns) / 1e9
        return f"{name}: the meter failed at {when:+.1f} s of the phase: {series.failed.reason}"
    first, last = _edges(times, window)
    if first < 0:
        return f"{name}: no sample before the phase began{_why(series, None, window.start_ns)}"
    if last >= len(times):
        return f"{name}: no sample after the phase ended{_why(series, window.start_ns, None)}"
    steps = np.diff(times[first : last + 1])
    widest = int(np.argmax(steps)) if len(steps) else 0
    if len(steps) and steps[widest] > MAX_GAP_MS * 1e6:
        begins, ends = int(times[first + widest]), int(times[first + widest + 1])
        when = (begins - window.start_ns) / 1e9
        return f"{name}: a gap of {steps[widest] / 1e6:.0f} ms at {when:+.1f} s{_why(series, begins, ends)}"
    expected = (window.end_ns - window.start_ns) // period_ns
    count = int(np.searchsorted(times, window.end_ns) - np.searchsorted(times, window.start_ns))
    if expected and (expected - count) / expected > MAX_MISSING:
        reason = _why(series, window.start_ns, window.end_ns)
        return f"{name}: {expected - count} of {expected} samples are missing{reason}"
    return None


def _why(series: Series, begins_ns: int | None, ends_ns: int | None) -> str:
    """Return the first recorded reason for a missing value in a span, as the end of a message; empty if none."""
    for missing in series.missing:
        if (begins_ns is None or missing.at_ns >= begins_ns) and (ends_ns is None or missing.at_ns <= ends_ns):
            return f": {missing.reason}"
    return ""
