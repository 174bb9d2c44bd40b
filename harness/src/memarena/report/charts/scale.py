"""Computes axes of charts: pixel of a value, and round values for ticks.

Comparisons have a tolerance (``0.999``, ``1.0001``, ``2.01``), as powers and logarithms of floats are not exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Linear:
    """A linear axis from ``low`` at ``start`` to ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Logarithmic:
    """A logarithmic axis; ``low`` and ``high`` above 0."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value; values beyond the axis are at its end."""
        inside = min(max(value, self.low), self.high)
        return self.start + math.log(inside / self.low) / math.log(self.high / self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return 1, 2 and 5 times powers of ten; only the powers if the axis spans more than two of them."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1.0,) if math.log10(self.high / self.low) > 2.01 else (1.0, 2.0, 5.0)
        values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [v for v in values if self.low * 0.999 <= v <= self.high * 1.001]


def log_axis(smallest: float, largest: float, start: float, end: float) -> Logarithmic:
    """Return a logarithmic axis that includes both values and begins and ends at a tick."""
    return Logarithmic(_step_down(smallest), _step_up(largest), start, end)


def round_up(value: float) -> float:
    """Return the least value, at least this large, whose quarters are round numbers: 1.3 gives 1.6, 500 gives 600."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * power >= value * 0.9999)


def tick_label(value: float) -> str:
    """Format a round value without trailing zeros: 0.6, 2.5, 1,200."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _step_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (5, 2, 1) if step * power <= value * 1.0001)


def _step_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10, 20) if step * power > value * 1.0001)
