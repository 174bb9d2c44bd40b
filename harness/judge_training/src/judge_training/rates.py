"""Computes error rates with Wilson intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

_Z = 1.959963984540054
"""Quantile of the standard normal distribution for a 95% interval."""


@dataclass(frozen=True)
class Rate:
    """A number of errors among a number of cases."""

    errors: int
    cases: int

    @property
    def share(self) -> float | None:
        """Errors by cases, 0 to 1; None without a case."""
        return self.errors / self.cases if self.cases else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the share; (0, 1) without a case."""
        if not self.cases:
            return 0.0, 1.0
        share, n = self.errors / self.cases, self.cases
        middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        if self.share is None:
            return "n/a"
        low, high = self.interval
        return f"{self.errors} of {self.cases} = {self.share:.1%} ({low:.1%} to {high:.1%})"
