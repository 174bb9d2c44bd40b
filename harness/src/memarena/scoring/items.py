"""Computes item statistics: which questions distinguish memories, and how reliably the egos of a world order them.

An item is a question, a respondent a memory read by one reader. The theory is that of classical tests (Lord and Novick
1968). A statistic from fewer memories or egos than the constants below name is not computed; it has a reason instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from scipy.special import stdtrit

from memarena.log.records import Record
from memarena.scoring.breakdowns import FAMILY_ORDER
from memarena.scoring.results import QuestionScore, RowScores
from memarena.scoring.tally import Array
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS, POWER

LEAST_MEMORIES = 3
"""Fewest memories for a correlation over memories, and for reliability."""
LEAST_EGOS = FEWEST_CLUSTERS
"""Fewest egos for reliability, and for a variance between egos."""
DIFFERENCE = 0.03
"""Difference between two memories (0 to 1) for whose detection the number of egos is computed."""
_MOST_EGOS = 1_000_000
"""Number of egos from which the search for a sufficient number stops."""


class Known(Record):
    """A figure, or why there is none."""

    value: float | None = None
    why_not: str = ""


class Item(Record):
    """A question over the memories of a reader."""

    instance_id: str
    family: str
    difficulty: float
    """Mean score over the memories: 0 if none is right, 1 if all are."""
    discrimination: float | None
    """Corrected item-total correlation; None if all memories score the same on this item, or on all others together."""


class ItemGroup(Record):
    """The items of a family, or all of them."""

    family: str
    """Name of the family; ``all`` for all families together."""
    items: int
    difficulty: float
    floor: float
    """Share of items that no memory has right."""
    ceiling: float
    """Share of items that every memory has right."""
    discrimination: Known
    """Median over the items that have a discrimination."""


class ItemStatistics(Record):
    """Statistics of one measure over the memories of a reader."""

    measure: str
    """``answerable``, or ``right`` (answers of the reader)."""
    reader: str
    memories: tuple[str, ...]
    egos: int
    left_out: int
    """Questions that are left out, as at least one memory has no score for them."""
    groups: tuple[ItemGroup, ...]
    """All items first, then by family."""
    competitors: tuple[str, ...]
    """Memories without diagnostics, over which ``reliability`` and the numbers of egos are computed."""
    reliability: Known
    """Reliability of the order of the competitors over egos, see :func:`reliability`."""
    egos_for_difference: Known
    """Egos from which a difference of :data:`DIFFERENCE` between two competitors is detected: median over all pairs."""
    most_egos_for_difference: Known
    """The same for the pair that needs the most egos."""
    items: tuple[Item, ...]


@dataclass(frozen=True)
class _Matrix:
    """Scores of shape (memories, items), with the question of each column."""

    scores: Array
    questions: tuple[QuestionScore, ...]

    def per_ego(self) -> Array:
        """Return each memory's mean score over the questions of each ego, of shape (memories, egos)."""
        egos = sorted({q.ego for q in self.questions})
        columns = [[i for i, q in enumerate(self.questions) if q.ego == ego] for ego in egos]
        return np.column_stack([self.scores[:, own].mean(axis=1) for own in columns])


def item_statistics(rows: Sequence[RowScores], questions: Sequence[QuestionScore]) -> list[ItemStatistics]:
    """Compute the statistics of *answerable* and of right answers, for each reader of a run.

    Items are the questions that score (no extensions, controls or owner's own D6 items), for *answerable* those that
    have something to retrieve. A score is the mean over a row's headline seeds.
    """
    by_cell: dict[str, dict[str, QuestionScore]] = {}
    for question in questions:
        if not question.outside_f1 and question.dimension != "X1":
            by_cell.setdefault(question.cell_id, {})[question.instance_id] = question
    readers: dict[str, list[RowScores]] = {}
    for row in rows:
        # Such a row has no figures, and its answers say nothing about a question.
        if "no_evidence" not in row.marks:
            readers.setdefault(row.reader, []).append(row)
    return [
        _statistics(measure, reader, rows_of_reader, by_cell)
        for measure in ("answerable", "right")
        for reader, rows_of_reader in readers.items()
    ]


def _score(measure: str, question: QuestionScore) -> float | None:
    if question.outcome is None:
        return None
    if measure == "answerable":
        return None if question.suffices is None else float(question.suffices)
    return None if question.unmeasured else float(question.correct)


def _statistics(
    measure: str, reader: str, rows: Sequence[RowScores], by_cell: Mapping[str, Mapping[str, QuestionScore]]
) -> ItemStatistics:
    """Return the item statistics of a measure over the memories of one reader.

    Reliability and the number of egos needed are computed without diagnostics.
    """
    cells = [[c.cell_id for c in row.cells if c.seed_label in row.headline_seeds] for row in rows]
    matrix, left_out = _matrix(measure, [[by_cell.get(cell, {}) for cell in own] for own in cells])
    competing = [index for index, row in enumerate(rows) if not row.diagnostic]
    own = _Matrix(matrix.scores[competing], matrix.questions)
    egos = list(egos_needed(own.per_ego())) if matrix.questions and len(competing) > 1 else []
    reason = "fewer than 2 memories compete" if len(competing) < 2 else f"fewer than {LEAST_EGOS} egos"
    return ItemStatistics(
        measure=measure,
        reader=reader,
        memories=tuple(row.label for row in rows),
        egos=len({q.ego for q in matrix.questions}),
        left_out=left_out,
        groups=tuple(_groups(matrix)),
        competitors=tuple(rows[index].label for index in competing),
        reliability=reliability(own.per_ego()) if matrix.questions else Known(why_not="no item"),
        egos_for_difference=Known(value=median(egos)) if egos else Known(why_not=reason),
        most_egos_for_difference=Known(value=max(egos)) if egos else Known(why_not=reason),
        items=tuple(_items(matrix)),
    )


def _matrix(measure: str, rows: Sequence[Sequence[Mapping[str, QuestionScore]]]) -> tuple[_Matrix, int]:
    """Return the scores of the questions that every row and seed has a score for, and the number of other questions."""
    planned = {i: q for row in rows for cell in row for i, q in cell.items() if measure == "right" or q.retrievable}
    columns, questions = [], []
    for instance_id, question in sorted(planned.items()):
        scores = [[_score(measure, cell[instance_id]) if instance_id in cell else None for cell in row] for row in rows]
        answered_by_all = [[score for score in row if score is not None] for row in scores]
        if all(len(some) == len(row) > 0 for some, row in zip(answered_by_all, scores, strict=True)):
            columns.append([fmean(some) for some in answered_by_all])
            questions.append(question)
    array = np.array(columns, dtype=np.float64).reshape(len(columns), len(rows)).T
    return _Matrix(array, tuple(questions)), len(planned) - len(questions)


# ------------------------------------------------------------------ items


def corrected_item_total(scores: Array) -> Array:
    """Correlate each item with the total of all other items, over memories (Henrysson 1963).

    Args:
        scores: of shape (memories, items).

    Returns:
        one correlation for each item; NaN if the item, or the total of the others, is the same for all memories.
    """
    others = scores.sum(axis=1, keepdims=True) - scores
    item, others = scores - scores.mean(axis=0), others - others.mean(axis=0)
    spread = np.sqrt((item**2).sum(axis=0) * (others**2).sum(axis=0))
    constant = spread < 1e-9
    return np.where(constant, np.nan, (item * others).sum(axis=0) / np.where(constant, 1, spread))


def _correlations(matrix: _Matrix) -> Array:
    if len(matrix.scores) < LEAST_MEMORIES or not matrix.questions:
        return np.full(len(matrix.questions), np.nan)
    return corrected_item_total(matrix.scores)


def _items(matrix: _Matrix) -> Iterator[Item]:
    correlations = _correlations(matrix)
    for column, question in enumerate(matrix.questions):
        r = float(correlations[column])
        yield Item(
            instance_id=question.instance_id,
            family=question.family,
            difficulty=float(matrix.scores[:, column].mean()),
            discrimination=None if math.isnan(r) else r,
        )


def _groups(matrix: _Matrix) -> Iterator[ItemGroup]:
    """Yield difficulty, floor, ceiling and discrimination of all items, then of each family's."""
    correlations = _correlations(matrix)
    for family in ("all", *FAMILY_ORDER):
        columns = [i for i, q in enumerate(matrix.questions) if family in ("all", q.family)]
        if not columns:
            continue
        scores, values = matrix.scores[:, columns], [float(r) for r in correlations[columns] if not math.isnan(r)]
        reason = (
            f"fewer than {LEAST_MEMORIES} memories" if len(scores) < LEAST_MEMORIES else "no item tells memories apart"
        )
        yield ItemGroup(
            family=family,
            items=len(columns),
            difficulty=float(scores.mean()),
            floor=float((scores.max(axis=0) == 0).mean()),
            ceiling=float((scores.min(axis=0) == 1).mean()),
            discrimination=Known(value=median(values)) if values else Known(why_not=reason),
        )


# ------------------------------------------------------------------ egos


def reliability(by_ego: Array) -> Known:
    """Compute Cronbach's alpha with egos as the parts of the test and memories as its respondents (Cronbach 1951).

    alpha = k / (k - 1) · (1 - Σ var(part) / var(total)), where k is the number of egos, a part is a memory's mean score
    over one ego's questions, and variances are sample variances over memories. It equals KR-20 if each ego has one
    question. It estimates the share of the spread between memories that other egos would show too, and can be below 0.

    Args:
        by_ego: scores of shape (memories, egos).
    """
    memories, egos = by_ego.shape
    if memories < LEAST_MEMORIES:
        return Known(why_not=f"fewer than {LEAST_MEMORIES} memories compete")
    if egos < LEAST_EGOS:
        return Known(why_not=f"fewer than {LEAST_EGOS} egos")
    total = float(by_ego.sum(axis=1).var(ddof=1))
    if total < 1e-12:
        return Known(why_not="all memories have the same total")
    return Known(value=egos / (egos - 1) * (1 - float(by_ego.var(axis=0, ddof=1).sum()) / total))


def egos_needed(by_ego: Array, difference: float = DIFFERENCE) -> Iterator[float]:
    """Yield for each pair of memories how many egos detect a mean difference with 80% power at 5% two-sided.

    With s² the sample variance over egos of the paired difference, it is the least n with n ≥ ((t₀.₉₇₅ + t₀.₈) · s /
    δ)², t with n - 1 degrees of freedom (Chow, Shao and Wang 2008, section 3.1, paired), for egos with as many
    questions as in this run. Yields nothing below :data:`LEAST_EGOS` egos.

    Args:
        by_ego: scores of shape (memories, egos).
        difference: δ, 0 to 1.
    """
    if by_ego.shape[1] < LEAST_EGOS:
        return
    for first, second in itertools.combinations(by_ego, 2):
        yield float(_least_egos(float((first - second).std(ddof=1)) / difference))


def _least_egos(ratio: float) -> int:
    """Find the least n of :func:`egos_needed` for the ratio s / δ by bisection, as the bound falls with n."""

    def enough(n: int) -> bool:
        return n >= (float(stdtrit(n - 1, 0.975) + stdtrit(n - 1, POWER)) * ratio) ** 2

    low, high = 1, 2
    while not enough(high) and high < _MOST_EGOS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
