"""Draws egos (bootstrap) and computes the intervals of figures over these draws.

Egos are drawn with replacement, D6 stratified by action: the egos of DENY items and those of ALLOW items are drawn
separately, so that every draw has both. The same draws are used for every cell, seed and comparison of a run, which
makes differences paired. Their seed is the hash of the data set, so the same answers have the same intervals in any
run.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

# Not scipy.stats, which calls the same functions: importing it takes a second, and every command imports this module.
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from memarena.scoring.results import QuestionScore
from memarena.scoring.tally import ALLOW, DENY, GROUPS, GROUPS_OF, OTHERS, Array, Right, Tally, figures_of
from memarena.scoring.uncertainty_records import POWER, RESAMPLES, Interval

_LEAST_DEFINED = 0.5
"""Least share of draws under which a figure must be defined to have an interval."""


class Draws:
    """How often each ego is in each draw, for the three strata: DENY, ALLOW and all other groups of questions.

    ``rows`` has the row of each ego in a tally; ``weights`` has by stratum the counts, of shape (egos, draws).
    """

    def __init__(self, rows: Mapping[str, int], weights: Mapping[str, Array]) -> None:
        self.rows = rows
        self._weights = weights
        """By stratum, of shape (egos, draws)."""
        self._totals: dict[bytes, Array] = {}

    def figures(self, sums: Tally) -> dict[str, Array]:
        """Compute every figure of a cell under every draw, by name, each of shape (draws,)."""
        key = sums.total.tobytes()
        if key not in self._totals:  # cells of a run are asked the same questions
            self._totals[key] = self.weigh(sums.total)
        return figures_of(self.weigh(sums.right), self._totals[key])

    def weigh(self, sums: Array) -> Array:
        """Convert sums by ego, of shape (egos, groups), to sums by draw, of shape (draws, groups) and column-major."""
        out = np.empty((len(GROUPS), self._weights["others"].shape[1]))
        for stratum, groups in (("others", OTHERS), ("DENY", DENY), ("ALLOW", ALLOW)):
            # A product with @ starts threads, which slow each other down if two processes do this.
            np.einsum("eg,ed->gd", sums[:, groups], self._weights[stratum], out=out[groups])
        return out.T

    def shares(self, questions: Sequence[QuestionScore], right: Right) -> Array:
        """Return the share of right questions by draw, without strata; NaN for a draw without any of the questions."""
        rows = [self.rows[question.ego] for question in questions]
        counted = np.bincount(rows, [right(question) for question in questions], len(self.rows))
        totals = np.bincount(rows, minlength=len(self.rows))
        right_drawn, asked_drawn = (np.einsum("e,ed->d", sums, self._weights["others"]) for sums in (counted, totals))
        with np.errstate(invalid="ignore"):
            return np.asarray(right_drawn / asked_drawn)


def draw_egos(questions: Sequence[QuestionScore], seed: str, resamples: int = RESAMPLES) -> Draws:
    """Draw from the egos that the questions belong to.

    Args:
        questions: those of any number of cells.
        seed: the hash of the data set, which seeds the draws.
        resamples: number of draws.
    """
    egos = sorted({q.ego for q in questions})
    rows = {ego: row for row, ego in enumerate(egos)}
    strata = {"others": set(egos)} | {
        name: {q.ego for q in questions if q.dimension == "D6" and not q.outside_f1 and q.allowed is may_disclose}
        for name, may_disclose in (("DENY", False), ("ALLOW", True))
    }
    members = tuple((name, tuple(sorted(rows[ego] for ego in members_egos))) for name, members_egos in strata.items())
    return Draws(rows, _weights(seed, len(egos), members, resamples))


def draw_rows(egos: int, seed: str, resamples: int = RESAMPLES) -> Draws:
    """Make the draws of :func:`draw_egos` for egos named by their row ("0", "1", …), with D6's strata empty."""
    strata = (("others", tuple(range(egos))), ("DENY", ()), ("ALLOW", ()))
    return Draws({str(row): row for row in range(egos)}, _weights(seed, egos, strata, resamples))


@lru_cache(maxsize=2)  # runs of one data set draw the same
def _weights(
    seed: str, egos: int, strata: tuple[tuple[str, tuple[int, ...]], ...], resamples: int
) -> Mapping[str, Array]:
    """Draw each stratum; read-only arrays of shape (egos, draws). ``strata``: name and rows of the egos of each."""
    digest = hashlib.sha256(seed.encode()).digest()
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
    return {name: _counts(rng, egos, rows, resamples) for name, rows in strata}


def _counts(rng: np.random.Generator, egos: int, rows: Sequence[int], resamples: int) -> Array:
    counts = np.zeros((egos, resamples))
    if rows:
        n = len(rows)
        counts[list(rows)] = rng.multinomial(n, np.full(n, 1 / n), size=resamples).T
    counts.setflags(write=False)
    return counts


def interval(values: Array, clusters: int) -> Interval | None:
    """Return the 95% interval of a figure from its values by draw (NaN: undefined under that draw).

    Percentiles are expanded for few clusters (Hesterberg 2015, "What teachers should know about the bootstrap",
    section 3.3): a plain percentile interval is that of a normal with a variance too small by (n - 1)/n.
    None for fewer than two clusters, or if most draws leave the figure undefined.
    """
    defined = values[~np.isnan(values)]
    if clusters < 2 or len(defined) < _LEAST_DEFINED * len(values) or not len(defined):
        return None
    tail = ndtr(-_expansion(clusters) * stdtrit(clusters - 1, 0.975))
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(low=float(low), high=float(high), se=_sd(defined), method="bootstrap_egos", clusters=clusters)


def clusters_of(totals: Array, metric: str) -> int:
    """Count the egos of a figure: the fewest of each of its D6 groups, and of all its other groups together."""
    columns = {g: totals[:, GROUPS.index(g)] > 0 for g in GROUPS_OF[metric]}
    sides = [column for g, column in columns.items() if g.startswith(("DENY", "ALLOW"))]
    others = [column for g, column in columns.items() if not g.startswith(("DENY", "ALLOW"))]
    counts = [int(column.sum()) for column in sides]
    if others:
        counts.append(int(np.any(others, axis=0).sum()))
    return min(counts, default=0)


def p_value(values: Array, clusters: int) -> float | None:
    """Return the two-sided p: the least level at which 0 is outside of the expanded percentiles of :func:`interval`.

    At least one draw counts as being on the other side of 0. None without draws or for fewer than 2 clusters.
    """
    defined = values[~np.isnan(values)]
    if not len(defined) or clusters < 2:
        return None
    below, above = int((defined <= 0).sum()), int((defined >= 0).sum())
    tail = min(0.5, (min(below, above) + 1) / (len(defined) + 1))
    return float(2 * stdtr(clusters - 1, ndtri(tail) / _expansion(clusters)))


def _expansion(clusters: int) -> float:
    """Return the factor by which percentiles are expanded in addition to Student's t, as the spread is too small."""
    return math.sqrt(clusters / (clusters - 1))


def smallest_difference(se: float, clusters: int) -> float | None:
    """Return the least difference detected with 80% power at 5% two-sided; None for fewer than 2 clusters."""
    if clusters < 2:
        return None
    return float((stdtrit(clusters - 1, 0.975) + stdtrit(clusters - 1, POWER)) * se)


def _sd(defined: Array) -> float:
    return float(defined.std(ddof=1)) if len(defined) > 1 else 0.0
