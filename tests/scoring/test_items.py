"""Tests item statistics: formulas against independent calculations, and a reason instead of a figure for small data."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from memarena.cli.scores import report
from memarena.log.records import AnyRecord
from memarena.scoring.errors import ScoringError
from memarena.scoring.items import corrected_item_total, egos_needed, item_statistics, reliability
from memarena_dataset.model import Family

from ..support.logs import (
    make_asked,
    make_cell,
    make_evidence,
    make_item,
    make_question,
    make_run,
    text_gold,
    write_log,
)
from ..support.scoring import score_records

EGOS = [f"ego_{n}" for n in range(9)]


def records(memories: int, egos: int, questions: int = 4) -> list[AnyRecord]:
    """Records of a run in which memory m answers, and retrieves evidence, more often the higher m is (seeded draws)."""
    draws = np.random.default_rng(5).random((2, memories, egos * questions)) < np.linspace(0.2, 0.8, memories)[:, None]
    cells = [make_cell(f"memory{m}") for m in range(memories)]
    asked_of = [
        make_question(f"q_{e}_{n}", Family.QA, text_gold("Porto"), "Where?", evidence=["s1"], ego=EGOS[e])
        for e in range(egos)
        for n in range(questions)
    ]
    answers = [
        make_asked(cell, q, "Porto" if draws[0, m, p] else "Vienna",
                   items=[make_item("x", "s1" if draws[1, m, p] else "s9")])
        for m, cell in enumerate(cells)
        for p, q in enumerate(asked_of)
    ]  # fmt: skip
    return make_run(cells, asked_of, [make_evidence("s1", ("Maya", "Porto."))], answers)


def test_an_item_is_correlated_with_all_others_and_not_with_itself() -> None:
    from scipy.stats import pearsonr  # imported here: it takes a second, in every process that runs tests

    scores = np.random.default_rng(4).integers(0, 2, (9, 5)).astype(float)
    scores[:, 3] = 1.0
    correlations = corrected_item_total(scores)
    for item in (0, 1, 2, 4):
        sum_of_others = scores.sum(axis=1) - scores[:, item]
        assert correlations[item] == pytest.approx(pearsonr(scores[:, item], sum_of_others).statistic)
    assert math.isnan(correlations[3]), "all have it right"


def test_reliability_is_1_if_egos_order_memories_alike_and_about_0_for_noise() -> None:
    alike = np.outer([0.2, 0.5, 0.9], np.ones(8)) + np.linspace(0, 0.1, 8)
    assert reliability(alike).value == pytest.approx(1.0)
    noise = np.random.default_rng(1).random((400, 30))
    assert abs(reliability(noise).value or 1.0) < 0.25


def test_alpha_equals_kr_20_for_questions_right_or_wrong() -> None:
    scores = np.random.default_rng(2).integers(0, 2, (12, 8)).astype(float)
    share, total = scores.mean(axis=0), scores.sum(axis=1)
    kr_20 = 8 / 7 * (1 - (share * (1 - share)).sum() / total.var())
    assert reliability(scores).value == pytest.approx(kr_20)


def test_the_needed_number_of_egos_has_a_power_of_about_80_percent() -> None:
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(3)
    base = rng.random((2, 4000)) * 0.3
    (ego_count,) = egos_needed(base)
    n = int(ego_count)
    significant = 0
    for _ in range(400):
        first, second = (base[row][rng.integers(0, 4000, n)] for row in (0, 1))
        shift = base[0].mean() - base[1].mean()
        significant += ttest_rel(first - shift + 0.03, second).pvalue < 0.05
    assert 0.7 < significant / 400 < 0.9
    assert list(egos_needed(base, 0.3)) < [ego_count]


@pytest.mark.parametrize(
    ("memories", "egos", "reliability_why", "needed_why", "discrimination_why"),
    [
        (1, 9, "fewer than 3 memories compete", "fewer than 2 memories compete", "fewer than 3 memories"),
        (2, 9, "fewer than 3 memories compete", "", "fewer than 3 memories"),
        (4, 3, "fewer than 8 egos", "fewer than 8 egos", ""),
        (4, 9, "", "", ""),
    ],
)
def test_small_data_has_a_reason_and_no_figure(
    memories: int, egos: int, reliability_why: str, needed_why: str, discrimination_why: str
) -> None:
    scored = score_records(records(memories, egos))
    for statistics in item_statistics(scored.scores.rows, scored.questions):
        assert statistics.groups[0].items == 4 * egos
        for figure, why in (
            (statistics.reliability, reliability_why),
            (statistics.egos_for_difference, needed_why),
            (statistics.groups[0].discrimination, discrimination_why),
        ):
            assert figure.why_not == why
            assert (figure.value is None) is bool(why)


def test_a_question_missing_for_one_memory_is_excluded() -> None:
    complete = records(3, 8)
    last = max(index for index, record in enumerate(complete) if record.kind == "asked")
    scored = score_records([*complete[:last], *complete[last + 1 :]])
    statistics = item_statistics(scored.scores.rows, scored.questions)
    assert [(measure.measure, measure.left_out, len(measure.items)) for measure in statistics] == [
        ("answerable", 1, 31),
        ("right", 1, 31),
    ]


def test_the_command_prints_tables_or_json_and_refuses_what_it_cannot_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_log(tmp_path / "run", records(4, 9))
    report([run], items=True)
    text = capsys.readouterr().out
    assert "Items: answerable, small" in text and "Items: right, small" in text and "reliability" in text
    report([run], output="json", items=True)
    (run_report,) = json.loads(capsys.readouterr().out)["runs"]
    assert {measure["measure"] for measure in run_report["items"]} == {"answerable", "right"}
    with pytest.raises(ScoringError, match="--items"):
        report([run], output="html", items=True)
