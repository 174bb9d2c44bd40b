"""Tests the notes on intervals over too few egos, which name the figure: D6 may have fewer egos than its table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from memarena.log.records import AnyRecord
from memarena.report.charts.bars import average_intervals
from memarena.report.figures import average_to_rank_by, few_egos
from memarena.report.layout import Section
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, rows_of
from memarena.report.tables.comparison import comparison_document
from memarena.report.tables.uncertainty import dimension_interval_table, interval_table
from memarena.scoring.compare import choose, compare
from memarena.scoring.run import ScoredRun
from memarena.scoring.uncertainty_records import Interval
from memarena_dataset.model import Family

from ..support.logs import make_asked, make_cell, make_question, make_run, permission, text_gold
from ..support.scoring import score_records

CELLS = [make_cell(backend) for backend in ("bm25", "oracle")]


def scored(denying: int) -> ScoredRun:
    """Score nine egos with a D2 question and an ALLOW item each; the first ``denying`` also have a DENY item."""
    pool, attempts = [], list[AnyRecord]()
    for n in range(9):
        ego = f"e{n}"
        pool.append(make_question(f"qa_{n}", Family.METADATA, text_gold("Porto"), "Where?", ego=ego, asker=ego))
        for action in ("disclose", "withhold") if n < denying else ("disclose",):
            gold = permission("4711", action)
            pool.append(make_question(f"{action}_{n}", Family.PERMISSION, gold, "What code?", ego=ego, asker="bob"))
    for cell in CELLS:
        for n, question in enumerate(pool):
            attempts.append(make_asked(cell, question, "It is 4711. Porto." if n % 3 else "I don't know."))
    return score_records(make_run(CELLS, pool, [], attempts))


def notes_of(sections: list[Section]) -> list[str]:
    return [note for section in sections for note in section.notes if "egos behind" in note]


@pytest.mark.parametrize("denying", [5, 9])
def test_tables_name_the_figures_that_rest_on_too_few_egos(denying: int) -> None:
    run = scored(denying)
    notes = notes_of(
        [
            part
            for make in (interval_table, dimension_interval_table)
            if (part := make(rows_of([ReportInput(run.scores)])))
        ]
    )
    few = "fewer than 8 egos behind D6 (5): these intervals are too narrow to rely on"
    assert notes == ([few] if denying == 5 else [])


@pytest.mark.parametrize("denying", [5, 9])
def test_a_comparison_names_the_figures_that_rest_on_too_few_egos(denying: int) -> None:
    run = scored(denying)
    document = comparison_document(compare(choose(run, "bm25@small"), choose(run, "oracle@small")))
    notes = notes_of(list(document.sections))
    names = "D6 (5), P (5), J (5), F1_PU paper (5), Withhold (5)"
    few = f"fewer than 8 egos behind {names}: these intervals cannot be relied on"
    assert notes == ([few] if denying == 5 else [])


def made(clusters: int) -> Interval:
    return Interval(low=0.2, high=0.4, se=0.1, method="bootstrap_egos", clusters=clusters)


def test_figures_of_several_rows_share_a_name_and_the_range_of_their_egos() -> None:
    intervals = [("D6", made(3)), ("Avg", made(9)), ("D6", made(5)), ("D6", made(9)), ("D5", None), ("J", made(7))]
    assert few_egos(intervals) == "D6 (3–5), J (7)"


def test_a_chart_names_the_rows_whose_average_rests_on_too_few_egos() -> None:
    rows = []
    for row, clusters in zip(rows_of([ReportInput(scored(9).scores)]), (5, 9), strict=True):
        average = average_to_rank_by([row.scores])
        metrics = {**row.scores.metrics, average: row.scores.metrics["D2"]}
        scores = row.scores.model_copy(update={"metrics": metrics, "intervals": {average: made(clusters)}})
        rows.append(replace(row, scores=scores))
    figure = average_intervals(rows)
    assert figure is not None
    assert "Fewer than 8 egos behind A (5): do not rely on these." in figure.caption
    whole: list[ReportRow] = rows[1:]
    figure = average_intervals(whole)
    assert figure is not None
    assert "Fewer than" not in figure.caption
