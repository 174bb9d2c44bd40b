"""Item statistics: which questions tell memories apart, and how well the people (egos) of a world order them.

An item is a question, a respondent a memory read by one reader. The theory is that of classical tests (Lord and Novick
1968); nothing is computed from fewer memories or egos than named here, and what is left out has a reason in its place.
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
"""For a correlation over memories, and for reliability."""
LEAST_EGOS = FEWEST_CLUSTERS
"""For reliability, and for a variance between egos."""
DIFFERENCE = 0.03
"""Of two memories, that the number of egos is computed for."""
_MOST_EGOS = 1_000_000


class Known(Record):
    """A figure, or why there is none."""

    value: float | None = None
    why_not: str = ""


class Item(Record):
    """A question over the memories of a reader."""

    instance_id: str
    family: str
    difficulty: float
    """Mean share right over the memories: 0 where none is right, 1 where all are."""
    discrimination: float | None
    """Corrected item-total correlation; None where all memories have the same score in it, or in all others."""


class ItemGroup(Record):
    """The items of a family, or all of them."""

    family: str
    """``all``: of every family."""
    items: int
    difficulty: float
    floor: float
    """Share of items that no memory has right."""
    ceiling: float
    """Share of items that every memory has right."""
    discrimination: Known
    """Median over the items that have one."""


class ItemStatistics(Record):
    """Statistics of one measure over the memories of a reader."""

    measure: str
    """``answerable``, or ``right`` (answers of the reader)."""
    reader: str
    memories: tuple[str, ...]
    egos: int
    left_out: int
    """Questions that some memory was not asked, or of which nothing is known of some memory."""
    groups: tuple[ItemGroup, ...]
    """All items first, then by family."""
    competitors: tuple[str, ...]
    """Memories without diagnostics, behind the next two."""
    reliability: Known
    """Of the order of the competitors over egos, see :func:`reliability`."""
    egos_for_difference: Known
    """Egos from which a difference of :data:`DIFFERENCE` between two competitors is detected: median over all pairs."""
    most_egos_for_difference: Known
    """The same for the pair that needs most."""
    items: tuple[Item, ...]


@dataclass(frozen=True)
class _Matrix:
    """Scores as an array of memories by items; the columns' questions."""

    scores: Array
    questions: tuple[QuestionScore, ...]

    def per_ego(self) -> Array:
        """Mean score of each memory over the questions of each ego: memories by egos."""
        egos = sorted({q.ego for q in self.questions})
        columns = [[i for i, q in enumerate(self.questions) if q.ego == ego] for ego in egos]
        return np.column_stack([self.scores[:, own].mean(axis=1) for own in columns])


def item_statistics(rows: Sequence[RowScores], questions: Sequence[QuestionScore]) -> list[ItemStatistics]:
    """Statistics of *answerable* and of right answers, for each reader of a run.

    Questions that score are items (no extension, no control, not the owner's own of D6); of *answerable* those that
    have something to retrieve. A score is the mean over a row's headline seeds.
    """
    by_cell: dict[str, dict[str, QuestionScore]] = {}
    for question in questions:
        if not question.outside_f1 and question.dimension != "X1":
            by_cell.setdefault(question.cell_id, {})[question.instance_id] = question
    readers: dict[str, list[RowScores]] = {}
    for row in rows:
        if "no_evidence" not in row.marks:
            readers.setdefault(row.reader, []).append(row)
    return [
        _statistics(measure, reader, own, by_cell)
        for measure in ("answerable", "right")
        for reader, own in readers.items()
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
    """Scores of the questions that are known of every row and seed, and how many others there are."""
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
    """Correlation of each item with the total of all other items, over memories (Henrysson 1963).

    Args:
        scores: memories by items.

    Returns:
        One correlation for each item; NaN where the item, or the rest, is the same for all memories.
    """
    rest = scores.sum(axis=1, keepdims=True) - scores
    item, rest = scores - scores.mean(axis=0), rest - rest.mean(axis=0)
    spread = np.sqrt((item**2).sum(axis=0) * (rest**2).sum(axis=0))
    constant = spread < 1e-9
    return np.where(constant, np.nan, (item * rest).sum(axis=0) / np.where(constant, 1, spread))


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
    correlations = _correlations(matrix)
    for family in ("all", *FAMILY_ORDER):
        own = [i for i, q in enumerate(matrix.questions) if family in ("all", q.family)]
        if not own:
            continue
        scores, values = matrix.scores[:, own], [float(r) for r in correlations[own] if not math.isnan(r)]
        reason = (
            f"fewer than {LEAST_MEMORIES} memories" if len(scores) < LEAST_MEMORIES else "no item tells memories apart"
        )
        yield ItemGroup(
            family=family,
            items=len(own),
            difficulty=float(scores.mean()),
            floor=float((scores.max(axis=0) == 0).mean()),
            ceiling=float((scores.min(axis=0) == 1).mean()),
            discrimination=Known(value=median(values)) if values else Known(why_not=reason),
        )


# ------------------------------------------------------------------ egos


def reliability(by_ego: Array) -> Known:
    """Cronbach's alpha with egos as the parts of the test and memories as its respondents (Cronbach 1951).

    alpha = k / (k - 1) · (1 - Σ var(part) / var(total)), with k egos, the part of an ego a memory's mean score over the
    ego's questions, and sample variances over memories. Equals KR-20 where each ego has one question. It is the share
    of the spread between memories that would be there with other egos too; below 0 where there is none.

    Args:
        by_ego: memories by egos.
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
    """Egos from which a mean difference is detected with 80% power at 5% two-sided, for each pair of memories.

    From the sample variance s² of the paired difference between egos: the least n with n ≥ ((t₀.₉₇₅ + t₀.₈) · s / δ)²,
    t with n - 1 degrees of freedom (Chow, Shao and Wang 2008, section 3.1, paired). Egos have as many questions as in
    this run. Nothing below :data:`LEAST_EGOS` egos.

    Args:
        by_ego: memories by egos.
        difference: δ, 0 to 1.
    """
    if by_ego.shape[1] < LEAST_EGOS:
        return
    for first, second in itertools.combinations(by_ego, 2):
        yield float(_least_egos(float((first - second).std(ddof=1)) / difference))


def _least_egos(ratio: float) -> int:
    """The least n of :func:`egos_needed` for s / δ, by bisection: the bound falls as n grows."""

    def enough(n: int) -> bool:
        return n >= (float(stdtrit(n - 1, 0.975) + stdtrit(n - 1, POWER)) * ratio) ** 2

    low, high = 1, 2
    while not enough(high) and high < _MOST_EGOS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
