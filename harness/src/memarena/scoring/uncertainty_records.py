"""Defines the records of uncertainty: intervals, paired differences, kinds of variance, differences across worlds.

The egos of a world are its clusters: their questions share a history, so a bootstrap draws egos, never questions. Every
record is computed from logs alone and is the same for the same logs.
"""

from __future__ import annotations

from typing import Literal

from memarena.log.records import Record

FEWEST_CLUSTERS = 8
"""Fewest clusters (egos of a world, or worlds) for a trusted interval: with 5 worlds a percentile bootstrap covers 84%
instead of 95%."""
RESAMPLES = 10_000
"""Number of draws of a bootstrap."""
POWER = 0.8
"""Power (at 5% two-sided) with which a design detects its smallest detectable difference."""

IntervalMethod = Literal["bootstrap_egos", "bootstrap_egos_or_items", "t_worlds"]


class Interval(Record):
    """A 95% interval of one figure, on the figure's own scale (0 to 1; J and differences -1 to 1)."""

    low: float
    high: float
    se: float
    """Standard error: the standard deviation over the draws (``t_worlds``: of the mean over worlds)."""
    method: IntervalMethod
    """``bootstrap_egos``: percentiles over draws of egos, expanded for few clusters (Hesterberg 2015), D6 stratified
    by action. ``bootstrap_egos_or_items`` (J): at each end the wider of that interval and Newcombe's over items, since
    draws of egos show no spread at P = U = 1. ``t_worlds``: Student's t over worlds."""
    clusters: int
    """Number of egos, or of worlds, that the interval is computed over."""

    @property
    def few_clusters(self) -> bool:
        """Whether the interval is over too few clusters to be trusted; a report then says so."""
        return self.clusters < FEWEST_CLUSTERS


class Variance(Record):
    """Kinds of spread of one figure of a row, each as a standard deviation; None: this log cannot tell."""

    metric: str
    answer_sd: float | None
    """Sample standard deviation of the figure between seeds s2 to s4, which ask the same questions at T = 0.3."""
    judge_sd: float | None
    """Sample standard deviation of the figure between repeated verdicts of the judge on the same answers, mean over
    the seeds."""
    judge_repeats: int
    """Verdicts per answer behind ``judge_sd``; 0 or 1 if nothing was repeated."""
    ego_sd: float | None
    """Sample standard deviation between the egos' own figures, over egos that have one."""
    ego_se: float | None
    """Standard error of the row's figure over draws of egos."""
    world_sd: float | None = None
    """Standard deviation between worlds; None unless runs of several worlds are compared."""
    smallest_difference: float | None = None
    """Least difference to an independent row of the same design that is detected with 80% power."""


class PairedDifference(Record):
    """One figure of A less the same figure of B, over the questions that both were asked, paired and drawn by ego."""

    metric: str
    a: float | None
    b: float | None
    difference: float | None
    """``a - b``; None if either is n/a."""
    interval: Interval | None
    """None for a single ego, or if most draws leave the figure undefined."""
    p_diagnostic: float | None
    """Two-sided p from the share of draws on the other side of 0. Diagnostic, as egos of one world share its events."""
    smallest_difference: float | None
    """Least difference that this pairing detects with 80% power."""
    questions: int
    """Number of questions of the figure that both sides were asked."""
    only_a: int
    """Number of these questions that are right in A only (under several seeds: right more often in A)."""
    only_b: int
    """Number of these questions that are right in B only."""


class Side(Record):
    """One side of a comparison."""

    run_id: str
    label: str
    """Row (``bm25@small``) or cell (``bm25@small/s2``)."""
    seeds: tuple[str, ...]


class Comparison(Record):
    """Two rows, or two cells, of one world question by question."""

    a: Side
    b: Side
    incomparable: tuple[str, ...]
    """Reasons why the two must not be compared, one line each; if there are any, ``differences`` is empty."""
    cautions: tuple[str, ...]
    """Differences in set-up that may explain the result, such as another reader or budget, one line each."""
    questions: int
    """Number of questions asked on both sides."""
    left_out: int
    """Number of questions asked on one side only, or with an infrastructure failure on either side."""
    differences: tuple[PairedDifference, ...] = ()


class UnpairedDifference(Record):
    """One figure of A on its data set less the same figure of B on another; both are there."""

    metric: str
    a: float
    b: float
    difference: float
    interval: Interval | None
    """None for a single ego on either side. Egos of the two data sets are drawn independently."""
    p_diagnostic: float | None


class UnpairedComparison(Record):
    """Two rows, or two cells, of two data sets: of one memory on public and fresh worlds, its overfitting."""

    a: Side
    b: Side
    datasets: tuple[str, str]
    """Names of A's and B's data set."""
    incomparable: tuple[str, ...]
    cautions: tuple[str, ...]
    questions: tuple[int, int]
    """Number of questions with an outcome under every seed, on A's side and on B's."""
    differences: tuple[UnpairedDifference, ...] = ()


class WorldDifference(Record):
    """One figure of A less the same of B in one world."""

    run_id: str
    dataset: str
    a: float
    b: float
    difference: float


class AcrossWorlds(Record):
    """One figure compared across worlds, each world one observation."""

    metric: str
    a_label: str
    b_label: str
    worlds: tuple[WorldDifference, ...]
    """Worlds in which both sides have the figure."""
    mean: float | None
    world_sd: float | None
    """Sample standard deviation of the difference between worlds."""
    interval: Interval | None
    """Student's t over the worlds' differences; None for fewer than 8 worlds, and a report then says so."""
    p_diagnostic: float | None
    smallest_difference: float | None
    """None for fewer than 8 worlds."""


class WorldsComparison(Record):
    """Two rows across several worlds, figure by figure."""

    a_label: str
    b_label: str
    run_ids: tuple[str, ...]
    incomparable: tuple[str, ...]
    cautions: tuple[str, ...]
    differences: tuple[AcrossWorlds, ...] = ()
