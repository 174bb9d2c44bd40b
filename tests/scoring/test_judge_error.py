"""Tests the correction of scores over golds in text for the judge's own error, and where reports state it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.judging.error_rates import ErrorCounts, text_error_counts
from memarena.log.records import AnyRecord, Question
from memarena.report.brief import brief_document
from memarena.report.document import report_document
from memarena.report.judge_summary import judge_lines
from memarena.report.layout import Section
from memarena.report.report_input import ReportInput
from memarena.scoring.formulas import wilson
from memarena.scoring.judge_error import Estimate, corrected_share, estimated, exactly
from memarena.scoring.results import RunScores
from memarena_dataset.model import Family
from memarena_dataset.values import NameValue
from pydantic import ValidationError

from ..support import golden_judged
from ..support.logs import make_asked, make_cell, make_question, make_run, text_gold
from ..support.scoring import score_records


@st.composite
def counted(draw: st.DrawFn, most_share: float = 1.0) -> Estimate:
    n = draw(st.integers(30, 500))
    return estimated(draw(st.integers(0, int(most_share * n))), n)


@given(counted())
def test_a_judge_without_errors_leaves_share_and_interval_as_they_are(observed: Estimate) -> None:
    corrected = corrected_share(observed, exactly(0.0), exactly(0.0))
    for end in ("value", "low", "high"):
        assert getattr(corrected, end) == pytest.approx(getattr(observed, end), abs=1e-12)


@given(counted(), counted(0.2), counted(0.2))
def test_uncertain_rates_widen_an_interval_that_holds_its_share(p: Estimate, fp: Estimate, fn: Estimate) -> None:
    corrected = corrected_share(p, fp, fn)
    with_exact_rates = corrected_share(p, exactly(fp.value), exactly(fn.value))
    assert corrected.value == with_exact_rates.value
    assert 0 <= corrected.low <= with_exact_rates.low + 1e-12
    assert with_exact_rates.low <= corrected.value <= with_exact_rates.high
    assert with_exact_rates.high - 1e-12 <= corrected.high <= 1


@pytest.mark.parametrize("n", [1, 12, 200, 100_000])
def test_a_share_of_0_or_1_has_a_one_sided_interval(n: int) -> None:
    rates = estimated(30, 308), estimated(17, 292)
    none, whole = (corrected_share(estimated(hits, n), *rates) for hits in (0, n))
    assert (none.value, none.low, whole.value, whole.high) == (0, 0, 1, 1)
    assert none.high >= wilson(0, n)[1] > 0
    assert whole.low <= wilson(1, n)[0] < 1
    flawless = corrected_share(estimated(0, n), estimated(0, 50), estimated(0, 50))
    assert 0 < flawless.high <= 1


def test_share_and_interval_follow_rogan_gladen_and_the_delta_method() -> None:
    """With large samples, for which Wilson's intervals equal normal ones."""
    n = 400_000
    corrected = corrected_share(*(estimated(int(share * n), n) for share in (0.4, 0.1, 0.06)))
    assert corrected.value == pytest.approx(0.3 / 0.84)
    true, youden = 0.3 / 0.84, 0.84
    variance = (0.4 * 0.6 + (1 - true) ** 2 * 0.1 * 0.9 + true**2 * 0.06 * 0.94) / (n * youden**2)
    assert corrected.high - corrected.low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=1e-3)


@pytest.mark.parametrize("true", [0.05, 0.3, 0.6, 0.95])
def test_the_interval_holds_the_true_share_in_about_95_of_100_runs(true: float) -> None:
    rng = np.random.default_rng(int(100 * true))
    fp, fn, rounds, hits = 0.1, 0.06, 2000, 0
    for _ in range(rounds):
        right_count = rng.binomial(250, true * (1 - fn) + (1 - true) * fp)
        corrected = corrected_share(
            estimated(int(right_count), 250),
            estimated(int(rng.binomial(308, fp)), 308),
            estimated(int(rng.binomial(292, fn)), 292),
        )
        hits += corrected.low <= true <= corrected.high
    assert 0.93 <= hits / rounds <= 0.985


def test_rates_no_better_than_chance_and_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="sum below 1"):
        corrected_share(exactly(0.5), estimated(45, 100), estimated(45, 100))
    for wrong in ({"right_called_wrong": 293}, {"wrong_called_right": -1}, {"right_called_wrong": 0, "right": 0}):
        with pytest.raises(ValidationError, match="expected"):
            ErrorCounts.model_validate(text_error_counts().model_dump() | wrong)


# ------------------------------------------------------------------ through a log


def scored(egos: int, in_text: int, typed: int, right: int) -> RunScores:
    """Score a run over three seeds in which each ego's first ``right`` questions with golds in text are correct."""
    pool: list[Question] = []
    attempts: list[AnyRecord] = []
    cells = [make_cell("bm25", seed=seed) for seed in ("s2", "s3", "s4")]
    for ego in range(egos):
        for n in range(in_text + typed):
            name = [] if n < in_text else [NameValue(name="Ines Okafor")]
            gold = text_gold("Ines Okafor" if name else "a red kite", values=name)
            pool.append(make_question(f"q_{ego}_{n}", Family.QA, gold, "What was it?", ego=f"e{ego}"))
            answer = "Ines Okafor" if name else "A red kite" if n < right + ego % 2 else "a wooden boat"
            attempts += [make_asked(cell, pool[-1], answer) for cell in cells]
    return score_records(make_run(cells, pool, [], attempts)).scores


def section_of(run: RunScores) -> Section | None:
    return next((part for part in report_document([ReportInput(run)]).sections if part.key == "judge-error"), None)


def test_a_row_has_its_judged_and_its_corrected_share_over_golds_in_text() -> None:
    run = scored(egos=10, in_text=5, typed=5, right=2)
    error = run.rows[0].judge_error
    assert error is not None
    assert (error.answers, error.questions, error.observed, error.clusters, error.fits) == (150, 50, 0.5, 10, True)
    rates = error.rates
    assert (rates.right_called_wrong, rates.right, rates.wrong_called_right, rates.wrong) == (16, 292, 17, 308)
    assert error.corrected == pytest.approx((0.5 - 17 / 308) / (1 - 16 / 292 - 17 / 308))
    assert error.low < error.corrected < error.high
    section = section_of(run)
    assert section is not None
    assert section.table is not None
    ends = f"{100 * error.low:.1f}–{100 * error.high:.1f}"
    assert [cell.text for cell in section.table.rows[0][2:]] == ["150", "50.0", f"{100 * error.corrected:.1f}", ends]
    assert len(section.notes) == 1
    (text_line,) = [line for line in judge_lines(run) if line.name == "in text"]
    assert "50% of verdicts are on golds in text: the judge calls 5.5% of right answers wrong" in text_line.text
    assert text_line in brief_document([ReportInput(run)]).sections[0].lines


def test_seeds_do_not_narrow_an_interval_over_the_questions_of_a_single_ego() -> None:
    error = scored(egos=1, in_text=8, typed=0, right=4).rows[0].judge_error
    assert error is not None
    assert (error.clusters, error.answers) == (None, 24)
    counts = error.rates
    expected = corrected_share(
        Estimate(0.5, *wilson(0.5, 8)), estimated(counts.wrong_called_right, counts.wrong),
        estimated(counts.right_called_wrong, counts.right),
    )  # fmt: skip
    assert (error.low, error.high) == (expected.low, expected.high)


def test_few_egos_and_a_share_that_the_rates_cannot_give_are_named() -> None:
    section = section_of(scored(egos=4, in_text=60, typed=0, right=0))
    assert section is not None
    assert ["fewer than 8 egos" in note for note in section.notes] == [False, True, False]
    assert section.notes[-1].startswith("bm25@small: these rates cannot give")


def test_few_golds_in_text_have_the_table_and_no_line_in_the_summary() -> None:
    run = scored(egos=2, in_text=1, typed=9, right=1)
    assert section_of(run) is not None
    assert not any(line.name == "in text" for line in judge_lines(run))


def test_typed_values_and_model_judges_have_no_corrected_share() -> None:
    run = scored(egos=2, in_text=0, typed=5, right=0)
    assert (run.rows[0].judge_error, section_of(run)) == (None, None)
    judged = score_records(golden_judged.records(), golden_judged.JUDGE)
    assert any(question.route == "text" for question in judged.questions), "some were left to the rules"
    assert all(row.judge_error is None for row in judged.scores.rows)
