"""Tests aggregation: cells become rows, pooled within dimensions, averaged over seeds, n/a without questions."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.log.records import AnyRecord, Cell, Outcome, Question
from memarena.scoring.metrics import cell_metrics
from memarena.scoring.results import QuestionScore
from memarena_dataset.model import Family

from ..support.logs import (
    abstain,
    cloze,
    make_asked,
    make_cell,
    make_question,
    make_run,
    permission,
    text_gold,
)
from ..support.scoring import score_records

CHOICE = [make_question(f"cloze_{n}", Family.CLOZE, cloze("A", "x", "y"), "Which?") for n in range(4)]
META = [make_question(f"meta_{n}", Family.METADATA, text_gold("Porto"), "Where?") for n in range(2)]
OUTCOMES = st.sampled_from([Outcome.CORRECT, Outcome.WRONG, Outcome.BACKEND_FAILED, Outcome.INFRA_FAILED, None])


def point(dimension: str, outcome: Outcome | None, **more: object) -> QuestionScore:
    values = {"cell_id": "c", "instance_id": "i", "ego": "e", "family": "f", "attempts": 1, **more}
    return QuestionScore.model_validate({"dimension": dimension, "outcome": outcome, **values})


def answers(cell: Cell, right: int) -> list[AnyRecord]:
    """Return attempts: ``right`` correct ones at the cloze questions, and correct ones at both metadata questions."""
    picked = [make_asked(cell, q, "A" if n < right else "B") for n, q in enumerate(CHOICE)]
    return [*picked, *(make_asked(cell, q, "Porto") for q in META)]


def test_the_headline_is_the_mean_and_deviation_over_s2_to_s4_without_s1() -> None:
    cells = [make_cell("bm25", seed=f"s{n}") for n in range(1, 5)]
    rights = (0, 1, 2, 4)
    attempts = [record for cell, right in zip(cells, rights, strict=True) for record in answers(cell, right)]
    (row,) = score_records(make_run(cells, [*CHOICE, *META], [], attempts)).scores.rows
    d1 = row.metrics["D1"]
    assert row.headline_seeds == ("s2", "s3", "s4")
    assert d1.value == pytest.approx((1 + 2 + 4) / 12)
    assert d1.sd == pytest.approx(stdev([1 / 4, 2 / 4, 4 / 4]))
    assert d1.seeds == 3
    assert row.greedy is not None
    assert row.greedy["D1"].value == 0.0
    assert row.metrics["Rec"].value == pytest.approx(((1 + 2) / 6 + (2 + 2) / 6 + 1) / 3)
    assert row.label == "bm25@small"


def test_a_row_of_one_seed_has_its_figure_and_no_deviation() -> None:
    cell = make_cell("bm25", seed="s1")
    (row,) = score_records(make_run([cell], [*CHOICE, *META], [], answers(cell, 3))).scores.rows
    assert (row.headline_seeds, row.greedy, row.metrics["D1"].value, row.metrics["D1"].sd) == (
        ("s1",),
        None,
        0.75,
        None,
    )


def test_cells_with_other_options_are_separate_rows() -> None:
    plain = make_cell("bm25", seed="s2")
    other = plain.model_copy(update={"cell_id": "bm25+k5@small/s2", "backend_options": {"k": "5"}})
    rows = score_records(
        make_run([plain, other], CHOICE, [], [*answers(plain, 1)[:4], *answers(other, 2)[:4]])
    ).scores.rows
    assert [(r.label, r.metrics["D1"].value) for r in rows] == [("bm25@small", 0.25), ("bm25+k5@small", 0.5)]


def test_a_dimension_without_questions_is_na_and_not_zero() -> None:
    cell = make_cell("bm25")
    metrics = score_records(make_run([cell], CHOICE, [], answers(cell, 4)[:4])).scores.rows[0].metrics
    for name in ("D2", "D3", "D4", "D5", "D5*", "D6", "Rea", "Trust", "Avg", "Avg*", "P", "U", "J", "self", "X1"):
        assert metrics[name].low is None, name
    assert metrics["Rec"].value == 1.0


def test_d5_star_of_a_constant_answer_is_0() -> None:
    """A constant 'I don't know' gets the abstain half right: half of plain D5, and 0 of D5*."""
    nothing = [make_question(f"conf_{n}", Family.CONFABULATION, abstain(), "When?") for n in range(3)]
    something = [make_question(f"ans_{n}", Family.CONFABULATION, text_gold("Porto"), "Where?") for n in range(3)]
    cell = make_cell("shy")
    attempts = [make_asked(cell, q, "I don't know.") for q in (*nothing, *something)]
    metrics = score_records(make_run([cell], [*nothing, *something], [], attempts)).scores.rows[0].metrics
    assert (metrics["D5"].value, metrics["D5*"].value) == (0.5, 0.0)


def test_extensions_and_the_owners_items_are_in_no_average() -> None:
    cell = make_cell("bm25")
    witness = make_question("wit_1", Family.WITNESS, text_gold("Porto"), "Where?")
    own = make_question("self_1", Family.PERMISSION, permission("4821", "disclose", self_item=True), "What is my code?")
    questions: list[Question] = [*CHOICE, witness, own]
    attempts = [*answers(cell, 4)[:4], make_asked(cell, witness, "Lisbon"), make_asked(cell, own, "No idea.")]
    metrics = score_records(make_run([cell], questions, [], attempts)).scores.rows[0].metrics
    assert (metrics["all"].value, metrics["X1"].value, metrics["self"].value) == (1.0, 0.0, 0.0)
    assert metrics["D6"].low is None


def test_breakdowns_cover_every_question_once() -> None:
    cell = make_cell("bm25")
    lags = [None, 0, 1, 3, 4, 7, 8, 14, 15, 400]
    questions = [
        make_question(
            f"q_{n:02d}",
            Family.CLOZE,
            cloze("A", "x", "y"),
            "Which?",
            lag_days=lag,
            difficulty="hard" if n % 2 else "easy",
        )
        for n, lag in enumerate(lags)
    ]
    attempts = [make_asked(cell, q, "A" if n % 2 else "B") for n, q in enumerate(questions)]
    slices = score_records(make_run([cell], questions, [], attempts)).scores.rows[0].slices
    assert {s.key: s.counts.planned for s in slices if s.by == "lag"} == {
        "0": 1,
        "1–3": 2,
        "4–7": 2,
        "8–14": 2,
        "15+": 2,
    }
    assert {s.key: s.score.value for s in slices if s.by == "difficulty"} == {"easy": 0.0, "hard": 1.0}
    assert sum(s.counts.planned for s in slices if s.by == "family") == len(lags)


# ------------------------------------------------------------------ laws

POINTS = st.lists(
    st.builds(
        point,
        st.sampled_from(["D1", "D2", "D3", "D4", "D5", "D6"]),
        OUTCOMES,
        half=st.sampled_from(["abstain", "answer"]),
        allowed=st.booleans(),
    ),
    max_size=40,
)


@given(POINTS)
def test_every_figure_lies_in_its_range_and_exists_only_without_infrastructure_failures(
    points: list[QuestionScore],
) -> None:
    exact = not any(p.outcome is Outcome.INFRA_FAILED for p in points)
    for name, score in cell_metrics(points, {}).items():
        if score.low is None:
            assert score.value is None
            continue
        assert score.high is not None
        assert score.low <= score.high + 1e-12, name
        assert (score.value is not None) is exact
        assert score.value is None or score.value == score.low == score.high


@given(POINTS)
def test_pooled_figures_equal_their_definition(points: list[QuestionScore]) -> None:
    metrics = cell_metrics(points, {})
    recall = [p for p in points if p.dimension in ("D1", "D2") and p.outcome is not None]
    if recall and metrics["Rec"].value is not None:
        assert metrics["Rec"].value == pytest.approx(sum(p.correct for p in recall) / len(recall))
    six = [metrics[f"D{n}"].value for n in range(1, 7)]
    known = [value for value in six if value is not None]
    assert metrics["Avg"].value == (pytest.approx(fmean(known)) if len(known) == 6 else None)


@given(POINTS, st.permutations(range(40)))
def test_the_order_of_questions_does_not_matter(points: list[QuestionScore], order: list[int]) -> None:
    shuffled = [points[i] for i in order if i < len(points)]
    before, after = cell_metrics(points, {}), cell_metrics(shuffled, {})
    for name, score in before.items():
        assert after[name].low == pytest.approx(score.low), name
