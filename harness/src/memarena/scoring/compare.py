"""Compares two rows or cells: paired over one world, unpaired over two data sets, or across several worlds.

``memarena compare`` uses it. Two sides that were asked the same questions are compared question by question, which
detects smaller differences than two separate intervals in a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from scipy.special import stdtr, stdtrit

from memarena.log.records import UNMEASURED
from memarena.scoring import formulas
from memarena.scoring.errors import ScoringError
from memarena.scoring.results import ANSWERABLE, CellScores, QuestionScore, RowScores, RunScores
from memarena.scoring.run import ScoredRun
from memarena.scoring.tally import GROUPS_OF, Array, Tally, figures_of, tally
from memarena.scoring.uncertainty.bootstrap import Draws, clusters_of, draw_egos, interval, p_value, smallest_difference
from memarena.scoring.uncertainty_records import (
    FEWEST_CLUSTERS,
    RESAMPLES,
    AcrossWorlds,
    Comparison,
    Interval,
    PairedDifference,
    Side,
    UnpairedComparison,
    UnpairedDifference,
    WorldDifference,
    WorldsComparison,
)


@dataclass(frozen=True)
class Chosen:
    """One side of a comparison: cells of a run that differ only in their seed."""

    scored: ScoredRun
    row: RowScores
    cells: tuple[CellScores, ...]

    @property
    def side(self) -> Side:
        """Name of this side: run, row or cell, and seeds."""
        label = self.cells[0].cell_id if len(self.cells) == 1 else self.row.label
        return Side(run_id=self.scored.scores.run_id, label=label, seeds=tuple(c.seed_label for c in self.cells))


def choose(scored: ScoredRun, name: str | None) -> Chosen:
    """Return the row or cell of a run by its name; without a name, its only row.

    A memory's name is enough if it has a single row. A row is represented by its headline seeds. Raises ScoringError,
    which lists the rows, if there is no such row or cell, or several match.
    """
    rows = scored.scores.rows
    labels = ", ".join(r.label for r in rows)
    if name is None:
        if len(rows) != 1:
            raise ScoringError(f"--cell: run {scored.scores.run_id} has {len(rows)} rows, name one of: {labels}")
        name = rows[0].label
    for row in rows:
        if row.label == name:
            return Chosen(scored, row, tuple(c for c in row.cells if c.seed_label in row.headline_seeds))
        for cell in row.cells:
            if cell.cell_id == name:
                return Chosen(scored, row, (cell,))
    matching = [row.label for row in rows if row.backend == name]
    if len(matching) == 1:
        return choose(scored, matching[0])
    if matching:
        raise ScoringError(
            f"--cell {name}: several rows are of {name} in run {scored.scores.run_id}: {', '.join(matching)}"
        )
    raise ScoringError(f"--cell {name}: no such row or cell in run {scored.scores.run_id}; there are: {labels}")


# ------------------------------------------------------------------ reasons against comparing


def incomparable(a: Chosen, b: Chosen, *, same_world: bool = True) -> tuple[str, ...]:
    """Return the reasons why two sides must not be compared, one line each; empty if they may be.

    ``same_world``: whether both must be of the same data set.
    """
    left, right = a.scored.scores, b.scored.scores
    reasons = []
    if same_world and left.dataset.sha256 != right.dataset.sha256:
        reasons.append(
            f"data sets differ: {left.dataset.name} ({left.dataset.sha256[:12]}) and "
            f"{right.dataset.name} ({right.dataset.sha256[:12]})"
        )
    if left.protocol != right.protocol:
        reasons.append(f"protocols differ: {left.protocol} and {right.protocol}")
    if a.row.reading.d6_rules != b.row.reading.d6_rules:
        rules = f"{a.row.reading.d6_rules} and {b.row.reading.d6_rules}"
        reasons.append(f"rules of D6 in the reader's prompt differ: {rules}")
    if a.row.reader == b.row.reader and _model(a) != _model(b):
        reasons.append(f"reader {a.row.reader} was another model: {_model(a)} and {_model(b)}")
    if left.judge != right.judge:
        reasons.append(f"judges differ: {left.judge} and {right.judge}")
    elif left.judge_versions and right.judge_versions and left.judge_versions != right.judge_versions:
        reasons.append(f"judge {left.judge} was of different versions: judge both runs again")
    return tuple(reasons)


def cautions(a: Chosen, b: Chosen) -> tuple[str, ...]:
    """Return other differences between two sides that may explain a difference of their figures, one line each."""
    notes = []
    if a.row.backend != b.row.backend and a.row.reader != b.row.reader:
        notes.append("both backend and reader differ: the difference cannot be assigned to either")
    left, right = a.row.reading, b.row.reading
    for field, name in (
        ("max_context_tokens", "context tokens"),
        ("max_answer_tokens", "answer tokens"),
        ("max_items", "items per search"),
        ("prompt_style", "prompt style"),
        ("thinking", "thinking"),
        ("reasoning_tokens", "reasoning tokens"),
    ):
        if getattr(left, field) != getattr(right, field):
            notes.append(f"{name} differ: {getattr(left, field)} and {getattr(right, field)}")
    if a.side.seeds != b.side.seeds:
        notes.append(f"seeds differ: {', '.join(a.side.seeds)} and {', '.join(b.side.seeds)}")
    if a.row.diagnostic != b.row.diagnostic:
        notes.append("one side is diagnostic: it sees what a deployed memory cannot")
    if a.row.without_reader != b.row.without_reader:
        notes.append("one side has answers that were made without any call of the reader")
    if a.scored.scores.memarena_version != b.scored.scores.memarena_version:
        versions = f"{a.scored.scores.memarena_version} and {b.scored.scores.memarena_version}"
        notes.append(f"the runs were made by memarena {versions}")
    return tuple(notes)


def _model(side: Chosen) -> str:
    return next((r.model for r in side.scored.scores.readers if r.name == side.row.reader), side.row.reader)


# ------------------------------------------------------------------ one world


def compare(a: Chosen, b: Chosen, *, resamples: int = RESAMPLES) -> Comparison:
    """Compare two sides over the questions that both were asked under every seed, paired and drawn by ego.

    ``resamples`` draws of egos give the intervals; two sides that must not be compared get reasons and no difference.
    """
    reasons = incomparable(a, b)
    left, right, left_out = _pair_questions(a, b)
    paired_ids = {q.instance_id for q in left[0]} if left else set()
    differences: tuple[PairedDifference, ...] = ()
    if not reasons and paired_ids:
        draws = draw_egos(left[0], a.scored.scores.dataset.sha256, resamples)
        differences = tuple(_differences(left, right, draws))
    return Comparison(
        a=a.side,
        b=b.side,
        incomparable=reasons,
        cautions=cautions(a, b),
        questions=len(paired_ids),
        left_out=left_out,
        differences=differences,
    )


Cells = list[list[QuestionScore]]
"""Questions of each seed, in the same order."""


def _pair_questions(a: Chosen, b: Chosen) -> tuple[Cells, Cells, int]:
    """Return the questions asked in every cell of both sides, and the number of other questions.

    A question that says nothing about the memory in any cell (``UNMEASURED``) is among the others.
    """
    left, right = _by_cell(a), _by_cell(b)
    ids_with_outcome = [
        {q.instance_id for q in cell if q.outcome is not None and q.outcome not in UNMEASURED}
        for cell in (*left, *right)
    ]
    shared_ids = set.intersection(*ids_with_outcome) if ids_with_outcome else set()
    all_ids = {q.instance_id for cell in (*left, *right) for q in cell}

    def of(cells: Cells) -> Cells:
        return [sorted((q for q in c if q.instance_id in shared_ids), key=lambda q: q.instance_id) for c in cells]

    return of(left), of(right), len(all_ids) - len(shared_ids)


def _by_cell(side: Chosen) -> Cells:
    return [[q for q in side.scored.questions if q.cell_id == cell.cell_id] for cell in side.cells]


def _differences(left: Cells, right: Cells, draws: Draws) -> Sequence[PairedDifference]:
    """Return the paired difference of every figure that at least one side has."""
    tallies_a, tallies_b = [tally(c, draws.rows) for c in left], [tally(c, draws.rows) for c in right]
    points = [_over_all(tallies_a), _over_all(tallies_b)]
    spread = [_mean_draws(tallies_a, draws), _mean_draws(tallies_b, draws)]
    differences = []
    for name, groups in GROUPS_OF.items():
        a, b = _value(points[0][name]), _value(points[1][name])
        if a is None and b is None:
            continue
        values = spread[0][name] - spread[1][name]
        clusters = clusters_of(tallies_a[0].total, name)
        both_measured = a is not None and b is not None
        bounds = interval(values, clusters) if both_measured else None
        only_a, only_b, count = _apart(left, right, groups)
        differences.append(
            PairedDifference(
                metric=name,
                a=a,
                b=b,
                difference=a - b if a is not None and b is not None else None,
                interval=bounds,
                p_diagnostic=p_value(values, clusters) if bounds else None,
                smallest_difference=smallest_difference(bounds.se, clusters) if bounds else None,
                questions=count,
                only_a=only_a,
                only_b=only_b,
            )
        )
    return differences


def _over_all(sums: Sequence[Tally]) -> dict[str, Array]:
    """Compute every figure over all egos, mean over seeds; arrays of shape (1,)."""
    by_seed = [figures_of(s.right.sum(axis=0, keepdims=True), s.total.sum(axis=0, keepdims=True)) for s in sums]
    return {name: np.asarray(np.mean([f[name] for f in by_seed], axis=0)) for name in GROUPS_OF}


def _mean_draws(sums: Sequence[Tally], draws: Draws) -> dict[str, Array]:
    by_seed = [draws.figures(s) for s in sums]
    return {name: np.asarray(np.mean([f[name] for f in by_seed], axis=0)) for name in GROUPS_OF}


def _value(array: Array) -> float | None:
    value = float(array[0])
    return None if math.isnan(value) else value


def _apart(left: Cells, right: Cells, groups: Sequence[str]) -> tuple[int, int, int]:
    """Count the questions of some groups that are right more often on the left, more often on the right, and all."""
    only_a = only_b = count = 0
    for position, question in enumerate(left[0]):
        if not _belongs(question, groups):
            continue
        count += 1
        share_a, share_b = (fmean([_counts(c[position], groups) for c in cells]) for cells in (left, right))
        only_a += share_a > share_b
        only_b += share_b > share_a
    return only_a, only_b, count


def _counts(question: QuestionScore, groups: Sequence[str]) -> bool:
    """Whether a question counts as right in the figure of some groups."""
    return question.suffices is True if groups[0].startswith(ANSWERABLE) else question.correct


def _belongs(question: QuestionScore, groups: Sequence[str]) -> bool:
    if groups[0].startswith(ANSWERABLE):
        return question.retrievable and not question.outside_f1 and f"{ANSWERABLE} {question.dimension}" in groups
    if question.dimension == "X1":
        return "X1" in groups
    if question.dimension == "D6":
        if question.outside_f1:
            return ("self" if question.self_item else "control") in groups
        return "all" in groups or any(g.startswith("ALLOW" if question.allowed else "DENY") for g in groups)
    name = f"D5 {question.half}" if question.dimension == "D5" else question.dimension
    return "all" in groups or name in groups


# ------------------------------------------------------------------ two data sets, unpaired


def compare_unpaired(a: Chosen, b: Chosen, *, resamples: int = RESAMPLES) -> UnpairedComparison:
    """Compare two sides that were asked questions of two data sets, such as a memory on public and on fresh worlds.

    The egos of the two data sets are drawn independently, so the interval is wider than a paired one.
    """
    reasons = incomparable(a, b, same_world=False)
    dataset_a, dataset_b = a.scored.scores.dataset, b.scored.scores.dataset
    if dataset_a.sha256 == dataset_b.sha256:
        reasons = (*reasons, f"both runs are of the data set {dataset_a.name}, whose questions are paired")
    left, right = (side_sums(side, resamples) for side in (a, b))
    differences: tuple[UnpairedDifference, ...] = ()
    if not reasons and left.questions and right.questions:
        differences = tuple(unpaired_differences(left, right))
    notes = cautions(a, b)
    if a.row.backend != b.row.backend:
        notes = (*notes, f"the memories differ: {a.row.backend} and {b.row.backend}")
    return UnpairedComparison(
        a=a.side,
        b=b.side,
        datasets=(dataset_a.name, dataset_b.name),
        incomparable=reasons,
        cautions=notes,
        questions=(left.questions, right.questions),
        differences=differences,
    )


@dataclass(frozen=True)
class SideSums:
    """One side of an unpaired comparison."""

    questions: int
    """Number of questions that were asked under every seed and never ended in an infrastructure failure."""
    tallies: tuple[Tally, ...]
    """Sums per ego of each seed, over these questions."""
    draws: Draws
    """Draws of the tallies' egos."""


def side_sums(side: Chosen, resamples: int = RESAMPLES) -> SideSums:
    """Compute a side's sums per ego, over the questions that :class:`SideSums` counts."""
    cells = _pair_questions(side, side)[0]
    draws = draw_egos(cells[0], side.scored.scores.dataset.sha256, resamples)
    return SideSums(len(cells[0]), tuple(tally(cell, draws.rows) for cell in cells), draws)


def unpaired_differences(left: SideSums, right: SideSums) -> Iterator[UnpairedDifference]:
    """Yield the difference of every figure that both sides have."""
    sums = [left.tallies, right.tallies]
    points = [_over_all(tallies) for tallies in sums]
    spread = [_mean_draws(side.tallies, side.draws) for side in (left, right)]
    for name in GROUPS_OF:
        a, b = (_value(figures[name]) for figures in points)
        if a is None or b is None:
            continue
        values = spread[0][name] - spread[1][name]
        clusters = min(clusters_of(tallies[0].total, name) for tallies in sums)
        bounds = interval(values, clusters)
        p = p_value(values, clusters) if bounds else None
        yield UnpairedDifference(metric=name, a=a, b=b, difference=a - b, interval=bounds, p_diagnostic=p)


# ------------------------------------------------------------------ several worlds


def across_worlds(pairs: Sequence[tuple[Chosen, Chosen]]) -> WorldsComparison:
    """Compare the same two rows in several worlds, each world one observation.

    Raises ScoringError for fewer than two worlds.
    """
    if len(pairs) < 2:
        raise ScoringError(f"expected at least 2 worlds, there is {len(pairs)}")
    worlds = [a.scored.scores.dataset.sha256 for a, _ in pairs]
    reasons = [line for a, b in pairs for line in incomparable(a, b)]
    reasons += [line for a, _ in pairs[1:] for line in incomparable(pairs[0][0], a, same_world=False)]
    if len(set(worlds)) < len(worlds):
        reasons.append("a world was given more than once: runs of one world are not separate observations")
    warnings = dict.fromkeys(line for a, b in pairs for line in cautions(a, b))
    if len(pairs) < FEWEST_CLUSTERS:
        warnings[f"{len(pairs)} worlds: below {FEWEST_CLUSTERS} no interval across worlds can be relied on"] = None
    a, b = pairs[0]
    return WorldsComparison(
        a_label=a.side.label,
        b_label=b.side.label,
        run_ids=tuple(left.scored.scores.run_id for left, _ in pairs),
        incomparable=tuple(dict.fromkeys(reasons)),
        cautions=tuple(warnings),
        differences=() if reasons else tuple(d for name in GROUPS_OF if (d := _world_difference(name, pairs))),
    )


def _world_difference(name: str, pairs: Sequence[tuple[Chosen, Chosen]]) -> AcrossWorlds | None:
    """Return the differences of a figure by world, with their mean; None if no world has it on both sides."""
    worlds = []
    for a, b in pairs:
        left, right = _metric(a, name), _metric(b, name)
        if left is not None and right is not None:
            scores: RunScores = a.scored.scores
            worlds.append(
                WorldDifference(
                    run_id=scores.run_id, dataset=scores.dataset.name, a=left, b=right, difference=left - right
                )
            )
    if not worlds:
        return None
    values = [w.difference for w in worlds]
    bounds, p = t_interval(values) if len(values) >= FEWEST_CLUSTERS else (None, None)
    return AcrossWorlds(
        metric=name,
        a_label=pairs[0][0].side.label,
        b_label=pairs[0][1].side.label,
        worlds=tuple(worlds),
        mean=fmean(values),
        world_sd=formulas.sample_sd(values),
        interval=bounds,
        p_diagnostic=p,
        smallest_difference=smallest_difference(bounds.se, len(values)) if bounds else None,
    )


def _metric(side: Chosen, name: str) -> float | None:
    """Return a figure of a side, mean over the seeds; None if any seed has no value."""
    scores: list[Mapping[str, float | None]] = [{name: c.metrics[name].value} for c in side.cells]
    values = [s[name] for s in scores]
    return fmean([k for k in values if k is not None]) if values and None not in values else None


def t_interval(values: Sequence[float]) -> tuple[Interval, float]:
    """Return Student's 95% interval of the mean of at least two values, and the two-sided p that the mean is 0."""
    n, mean = len(values), fmean(values)
    se = stdev(values) / math.sqrt(n)
    half = float(stdtrit(n - 1, 0.975)) * se
    bounds = Interval(low=mean - half, high=mean + half, se=se, method="t_worlds", clusters=n)
    if se == 0:
        return bounds, float(mean == 0)
    return bounds, float(2 * stdtr(n - 1, -abs(mean) / se))
