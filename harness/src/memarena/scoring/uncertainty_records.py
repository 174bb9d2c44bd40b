"""Records of uncertainty: intervals, paired differences, kinds of variance, worlds.

The egos of a world are its clusters: their questions share a history, so that a bootstrap draws egos, never questions.
Every record here is computed from logs alone and is the same for the same logs.
"""

from __future__ import annotations

from typing import Literal

from memarena.log.records import Record

FEWEST_CLUSTERS = 8
"""Below so many clusters (egos of a world, or worlds) no interval is trusted: with 5 worlds a percentile bootstrap
covers 84% instead of 95%."""
RESAMPLES = 10_000
"""Draws of every bootstrap."""
POWER = 0.8
"""Chance to be found, at 5% two-sided, of the smallest detectable difference of a design."""

IntervalMethod = Literal["bootstrap_egos", "bootstrap_egos_or_items", "t_worlds"]


class Interval(Record):
    """A 95% interval of one figure, on the figure's own scale (0 to 1; J and differences -1 to 1)."""

    low: float
    high: float
    se: float
    """Standard error: the standard deviation over the draws (``t_worlds``: of the mean over worlds)."""
    method: IntervalMethod
    """``bootstrap_egos``: percentiles over draws of egos, expanded for few clusters (Hesterberg 2015), D6 stratified
    by action. ``bootstrap_egos_or_items`` (J): at either end the wider of that and Newcombe's interval over items,
    since no draw of egos can show a spread at P = U = 1. ``t_worlds``: Student's t over worlds."""
    clusters: int
    """Egos, or worlds, behind it."""

    @property
    def few_clusters(self) -> bool:
        """Whether it rests on too few clusters to be relied on; a report says so."""
        return self.clusters < FEWEST_CLUSTERS


class Variance(Record):
    """Kinds of spread of one figure of a row, each as a standard deviation; None: this log cannot tell."""

    metric: str
    answer_sd: float | None
    """Between seeds s2 to s4, which ask the same questions at T = 0.3: sample standard deviation of the figure."""
    judge_sd: float | None
    """Between repeated verdicts of the same judge on the same answers: sample standard deviation of the figure, mean
    over the seeds."""
    judge_repeats: int
    """Verdicts per answer behind ``judge_sd``; 0 or 1 where nothing was repeated."""
    ego_sd: float | None
    """Between egos: sample standard deviation of the egos' own figures, over egos that have one."""
    ego_se: float | None
    """Standard error of the row's figure over draws of egos."""
    world_sd: float | None = None
    """Between worlds: filled only where runs of several worlds are compared."""
    smallest_difference: float | None = None
    """Least difference to an independent row of the same design that would be found with 80% power."""


class PairedDifference(Record):
    """One figure of A less the same figure of B, over the questions that both were asked, paired and drawn by ego."""

    metric: str
    a: float | None
    b: float | None
    difference: float | None
    """``a - b``; None where either is n/a."""
    interval: Interval | None
    """None with a single ego, or where most draws leave the figure undefined."""
    p_diagnostic: float | None
    """Two-sided share of draws on the other side of 0, doubled. Diagnostic: egos of one world share its events."""
    smallest_difference: float | None
    """Least difference that this pairing would have found with 80% power."""
    questions: int
    """Questions behind the figure that both sides were asked."""
    only_a: int
    """Of them: right in A only (a question asked under several seeds: right more often)."""
    only_b: int


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
    """Why the two must not be compared, one line each; then ``differences`` is empty."""
    cautions: tuple[str, ...]
    """Differences in set-up that matter for reading the result, such as another reader or another budget."""
    questions: int
    """Questions asked on both sides."""
    left_out: int
    """Questions asked on one side only, or with an infrastructure failure on either side."""
    differences: tuple[PairedDifference, ...] = ()


class UnpairedDifference(Record):
    """One figure of A on its data set less the same figure of B on another; both are there."""

    metric: str
    a: float
    b: float
    difference: float
    interval: Interval | None
    """None with a single ego on a side. Egos of the two data sets are drawn independently."""
    p_diagnostic: float | None


class UnpairedComparison(Record):
    """Two rows, or two cells, of two data sets: of one memory on public and fresh worlds, its overfitting."""

    a: Side
    b: Side
    datasets: tuple[str, str]
    """Names, of A's and of B's."""
    incomparable: tuple[str, ...]
    cautions: tuple[str, ...]
    questions: tuple[int, int]
    """With an outcome under every seed, on A's side and on B's."""
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
    """Worlds in which both figures are there."""
    mean: float | None
    world_sd: float | None
    """Sample standard deviation of the difference between worlds."""
    interval: Interval | None
    """Student's t over the worlds' differences; None below 8 worlds, and a report says so."""
    p_diagnostic: float | None
    smallest_difference: float | None
    """None below 8 worlds."""


class WorldsComparison(Record):
    """Two rows across several worlds, figure by figure."""

    a_label: str
    b_label: str
    run_ids: tuple[str, ...]
    incomparable: tuple[str, ...]
    cautions: tuple[str, ...]
    differences: tuple[AcrossWorlds, ...] = ()
