"""Tests breakdowns: each figure of a part equals the formula over the part's questions alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from memarena.report.answer_list import Filter, answers_document
from memarena.scoring.breakdowns import FIGURES, interference_bucket, lag_bucket
from memarena.scoring.metrics import cell_metrics, count
from memarena.scoring.results import QuestionScore
from memarena.scoring.run_facts import gather

from ..support import golden_run
from ..support.scoring import score_records

SCORED = score_records(golden_run.records())
KEYS: dict[str, Callable[[QuestionScore], str | None]] = {
    "lag": lambda q: lag_bucket(q.lag_days),
    "difficulty": lambda q: q.difficulty,
    "tier": lambda q: q.context_tier,
    "interference": lambda q: interference_bucket(q.interference),
    "wording": lambda q: q.wording,
    "dimension": lambda q: q.dimension,
    "family": lambda q: q.family,
}


def behind(row_cells: Iterable[str], by: str, key: str) -> list[QuestionScore]:
    """Return the questions of a part: without the owner's own items, and extensions (X1) by family only."""
    cells = set(row_cells)
    questions = [q for q in SCORED.questions if q.cell_id in cells and not q.self_item]
    return [q for q in questions if (q.dimension != "X1" or by == "family") and KEYS[by](q) == key]


@pytest.mark.parametrize("row", SCORED.scores.rows, ids=lambda row: row.label)
def test_a_part_has_the_figures_of_its_questions(row: object) -> None:
    row_scores = next(r for r in SCORED.scores.rows if r is row)
    cells = [c.cell_id for c in row_scores.cells if c.seed_label in row_scores.headline_seeds]
    compared = 0
    for part in row_scores.slices:
        questions = behind(cells, part.by, part.key)
        assert (part.counts, part.score) == (count(questions), count(questions).accuracy), (part.by, part.key)
        if part.by in ("family", "dimension"):
            assert not part.figures
            continue
        expected = {name: s for name, s in cell_metrics(questions, {}).items() if name in FIGURES and s.low is not None}
        assert set(part.figures) == set(expected)
        for name, score in part.figures.items():
            assert (score.value is None) == (expected[name].value is None)
            assert (score.low, score.high) == pytest.approx((expected[name].low, expected[name].high))
            compared += 1
    assert compared > 5


def test_a_part_with_infrastructure_failures_has_a_range() -> None:
    parts = [s for row in SCORED.scores.rows for s in row.slices if s.by == "tier" and s.counts.infra_failed]
    assert parts
    for part in parts:
        assert all(figure.value is None for figure in part.figures.values())
        assert any((f.low or 0) < (f.high or 0) for f in part.figures.values())


def test_questions_not_asked_yet_count_as_planned_only() -> None:
    waiting = [q for q in SCORED.questions if q.outcome is None and not q.self_item and q.dimension != "X1"]
    assert waiting
    row = next(r for r in SCORED.scores.rows if any(c.cell_id == waiting[0].cell_id for c in r.cells))
    parts = [s for s in row.slices if s.by == "dimension"]
    assert sum(s.counts.missing for s in parts) == sum(q.cell_id in {c.cell_id for c in row.cells} for q in waiting)


@pytest.mark.parametrize("by", ["lag", "difficulty", "tier"])
def test_the_answers_of_a_part_add_up_to_its_figure(by: str) -> None:
    """The first lines of ``memarena show --answers``; the owner's own D6 items and extensions are counted apart."""
    facts = gather(golden_run.records())
    for row in SCORED.scores.rows:
        cells = frozenset(c.cell_id for c in row.cells if c.seed_label in row.headline_seeds)
        for part in (s for s in row.slices if s.by == by and s.counts.asked):
            chosen = Filter(cells, **{by: part.key})
            top = answers_document(facts, SCORED.questions, chosen).sections[0].title
            assert top.startswith(
                f"{part.counts.correct:,} of {part.counts.asked:,} questions asked were answered right"
            ), top
