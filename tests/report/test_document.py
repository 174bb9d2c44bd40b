"""Tests the report's document: it describes the runs, marks rows that need it, and omits only empty columns."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from memarena.log.records import AnyRecord
from memarena.report.document import report_document
from memarena.report.layout import Cell, Column, Document, Section, section
from memarena.report.render.json import JsonReport, committed_schema, schema, to_json
from memarena.report.render.markdown import to_markdown
from memarena.report.report_input import ReportInput
from memarena.scoring.results import RunScores
from memarena.scoring.uncertainty_records import Interval
from memarena_dataset.model import Family
from pydantic import ValidationError

from ..support import golden_run
from ..support.golden_reports import plain
from ..support.logs import (
    cloze,
    make_asked,
    make_cell,
    make_evidence,
    make_item,
    make_question,
    make_reader,
    make_run,
    text_gold,
)
from ..support.scoring import score_records

QUESTIONS = [make_question(f"q_{n}", Family.CLOZE, cloze("A", "x", "y"), "Which?", evidence=["s"]) for n in range(4)]


def scores_of(*rights: int, question_count: int = 4, diagnostic: bool = False, real: bool = True) -> RunScores:
    """Score a run with one backend for each number in ``rights``, its number of right answers.

    ``diagnostic``: the first backend is one; ``real``: whether the reader is a language model.
    """
    cells = [make_cell(f"backend{n}", diagnostic=diagnostic and n == 0) for n in range(len(rights))]
    body: list[AnyRecord] = [
        make_asked(cell, q, "A" if n < right else "B")
        for cell, right in zip(cells, rights, strict=True)
        for n, q in enumerate(QUESTIONS[:question_count])
    ]
    return score_records(make_run(cells, QUESTIONS, [], body, readers=[make_reader(real=real)])).scores


def document_of(*runs: RunScores) -> Document:
    return report_document([ReportInput(run) for run in runs])


def part(document: Document, title: str) -> Section:
    return next(s for s in document.sections if s.title == title)


def column(table_section: Section, title: str) -> list[Cell]:
    assert table_section.table is not None
    index = [c.title for c in table_section.table.columns].index(title)
    return [row[index] for row in table_section.table.rows]


def test_the_best_value_of_a_column_is_marked_among_competitors_only() -> None:
    run = scores_of(4, 3, 1, diagnostic=True)
    # Without an interval over several egos no value is marked as best, so intervals are added below.
    assert not any(c.strong for c in column(part(document_of(run), "Main grid"), "Rec")), "one ego carries nothing"
    rows = []
    for row in run.rows:
        value = row.metrics["Rec"].value or 0.0
        estimate = Interval(low=value - 0.1, high=value + 0.1, se=0.05, method="bootstrap_egos", clusters=12)
        rows.append(row.model_copy(update={"intervals": {"Rec": estimate}}))
    cells = column(part(document_of(run.model_copy(update={"rows": tuple(rows)})), "Main grid"), "Rec")
    assert {c.text: c.strong for c in cells} == {"100.0": False, "75.0": True, "25.0": False}


def test_no_value_is_best_if_all_are_equal_or_there_is_only_one() -> None:
    assert not any(c.strong for c in column(part(document_of(scores_of(2, 2)), "Main grid"), "Rec"))
    assert not any(c.strong for c in column(part(document_of(scores_of(2)), "Main grid"), "Rec"))


def test_an_incomplete_row_is_marked_and_never_best() -> None:
    document = document_of(scores_of(3, 1, question_count=3))
    cells = column(part(document, "Main grid"), "Rec")
    assert [c.text for c in cells] == ["~100.0", "~33.3"]
    assert not any(c.strong for c in cells)
    assert any("incomplete: 2 questions not asked yet" in n for n in document.sections[0].notes)


def test_diagnostics_come_last_and_are_marked() -> None:
    names = [c.text for c in column(part(document_of(scores_of(4, 3, diagnostic=True)), "Main grid"), "backend")]
    assert names == ["backend1", "backend0 ◇"]


def test_the_extractive_reader_is_marked_as_none_and_has_no_ttft() -> None:
    grid = part(document_of(scores_of(3, real=False)), "Main grid")
    assert [c.text for c in column(grid, "reader")] == ["small †"]
    assert any("no reader" in note for note in grid.notes)
    assert grid.table is not None
    assert "S+TTFT ms" not in [c.title for c in grid.table.columns]


def test_columns_without_any_figure_are_omitted_and_named() -> None:
    grid = part(document_of(scores_of(3)), "Main grid")
    assert grid.table is not None
    assert [c.title for c in grid.table.columns] == ["backend", "reader", "answerable", "Rec", "right", "calls"]
    left_out = "Rea, Trust, Avg, Avg w/o D6, Avg*, Δ Vanilla, S+TTFT ms, Search ms, tokens"
    assert f"left out, n/a in every row: {left_out}" in grid.notes


def test_a_column_with_one_figure_stays() -> None:
    table_section = section("t", [Column("a"), Column("b")], [[Cell("n/a"), Cell("1")], [Cell("2"), Cell("n/a")]])
    assert table_section.table is not None
    assert len(table_section.table.columns) == 2


def test_rows_of_several_runs_share_a_grid_with_their_runs_number() -> None:
    document = document_of(scores_of(4), scores_of(2))
    grid = part(document, "Main grid")
    assert [c.text for c in column(grid, "run")] == ["1", "2"]
    assert [s.title for s in document.sections[:2]] == ["Run 1: run-test", "Run 2: run-test"]


def test_rows_without_d6_rules_in_their_prompts_have_separate_tables() -> None:
    first, second = scores_of(4), scores_of(2)
    rows = tuple(
        row.model_copy(update={"reading": row.reading.model_copy(update={"d6_rules": "inferred"})})
        for row in second.rows
    )
    document = document_of(first, second.model_copy(update={"rows": rows}))
    assert any("rules for sharing in some runs only" in line for line in part(document, "Between the runs").notes)
    assert [len(table.rows) for n in (1, 2) if (table := part(document, f"Main grid, run {n}").table)] == [1, 1]


def test_runs_over_different_data_are_reported_as_incomparable() -> None:
    first, second = scores_of(4), scores_of(2)
    other_data = second.model_copy(
        update={"dataset": second.dataset.model_copy(update={"sha256": "cd" * 32}), "protocol": "end_of_horizon"}
    )
    document = document_of(first, other_data)
    lines = part(document, "Between the runs").notes
    assert any("different data sets" in line for line in lines)
    assert any("different protocols" in line for line in lines)
    for number, backend in ((1, "run 1"), (2, "run 2")):
        grid = part(document, f"Main grid, run {number}")
        assert grid.table is not None
        assert len(grid.table.rows) == 1, backend
        assert not any(cell.strong for row in grid.table.rows for cell in row)
    assert not any(s.title == "Between the runs" for s in document_of(first, second).sections)


def test_the_share_of_verdicts_on_golds_in_text_is_reported() -> None:
    lines = document_of(score_records(golden_run.records()).scores).sections[0].lines
    assert any("% of its verdicts are on golds in text" in str(line) for line in lines)


@pytest.fixture(scope="module")
def golden() -> RunScores:
    return score_records(golden_run.records()).scores


def test_the_table_form_fits_120_columns(golden: RunScores) -> None:
    lines = plain(document_of(golden, golden)).splitlines()
    assert max(len(line) for line in lines) <= 120
    assert not any("\x1b" in line for line in lines)


def test_every_column_of_the_main_grid_is_explained(golden: RunScores) -> None:
    grid = part(document_of(golden), "Main grid")
    assert grid.table is not None
    explained = {title for title, _ in grid.legend}
    assert {c.title for c in grid.table.columns} - explained == {"backend", "reader"}


def test_markdown_tables_are_well_formed(golden: RunScores) -> None:
    lines = to_markdown(document_of(golden)).splitlines()
    tables: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    for table in tables[:-1]:
        assert len({line.replace("\\|", "").count("|") for line in table}) == 1, table[0]


def test_markdown_of_an_answer_is_escaped() -> None:
    text = to_markdown(Document("t", (section("s", [Column("a", align="left")], [[Cell("a|b <b>*c*\nd")]]),)))
    assert "| a\\|b &lt;b>\\*c\\* d |" in text


def test_control_characters_never_reach_a_terminal() -> None:
    table_section = section("s", [Column("a", align="left")], [[Cell("a\x1b[31mb")]])
    text = plain(Document("t", (table_section, Section("u", ("x\x1b]0;title\x07y",)))))
    assert "\x1b" not in text
    assert "\x07" not in text


# ------------------------------------------------------------------ JSON


def test_the_committed_schema_matches_the_records() -> None:
    remedy = "python -m memarena.report.render.json > harness/src/memarena/report/schema/report.v1.json writes it anew"
    assert committed_schema() == schema(), remedy


def test_json_reports_follow_their_records(golden: RunScores) -> None:
    text = to_json([ReportInput(golden)] * 2)
    assert len(JsonReport.model_validate_json(text).runs) == 2
    for broken in (text.replace('"metrics"', '"figures"', 1), text.replace('"runs": [', '"runs": [7, ', 1)):
        with pytest.raises(ValidationError):
            JsonReport.model_validate_json(broken)


def test_json_holds_figures_as_numbers_and_na_as_null(golden: RunScores) -> None:
    row = json.loads(to_json([ReportInput(golden)]))["runs"][0]["rows"][0]
    assert isinstance(row["metrics"]["D1"]["value"], float)
    assert row["metrics"]["X1"]["value"] is None
    assert _no_long_floats(row)


def _no_long_floats(value: object) -> bool:
    if isinstance(value, float):
        return round(value, 6) == value
    if isinstance(value, dict):
        return all(_no_long_floats(v) for v in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return all(_no_long_floats(v) for v in value)
    return True


def test_interference_has_its_own_table_if_the_data_set_states_it() -> None:
    marked = [
        q.model_copy(update={"instance": q.instance.model_copy(update={"metadata": {"interference": n}})})
        for q, n in zip(QUESTIONS, (0, 3, 3, 40), strict=True)
    ]
    cell = make_cell("bm25")
    attempts = [make_asked(cell, q, answer) for q, answer in zip(marked, "AABB", strict=True)]
    scores = score_records(make_run([cell], marked, [], attempts)).scores
    table_section = part(document_of(scores), "By number of interfering facts")
    assert table_section.table is not None
    assert [c.title for c in table_section.table.columns[-3:]] == ["0 (n 1)", "2–4 (n 2)", "17+ (n 1)"]
    assert [c.text for c in table_section.table.rows[0][-3:]] == ["100.0", "50.0", "0.0"]
    assert table_section.trace.endswith("--interference 0")
    assert "By number of interfering facts" not in to_markdown(document_of(scores_of(2)))


def test_evidence_cut_from_the_prompt_and_backends_without_sources_have_their_own_columns() -> None:
    cell = make_cell("bm25")
    evidence = [make_evidence("s1", ("Maya", "It is in Porto."))]
    where = [make_question(f"w_{n}", Family.QA, text_gold("Porto"), "Where?", evidence=["s1"]) for n in range(3)]
    item, silent = make_item("It is in Porto.", "s1"), make_item("It is in Porto.")
    attempts = [make_asked(cell, q, "Graz", items=[i]) for q, i in zip(where, (item, item, silent), strict=True)]
    assert attempts[0].answer is not None
    cut = attempts[0].model_copy(update={"answer": attempts[0].answer.model_copy(update={"shown_items": ()})})
    run = score_records(make_run([cell], where, evidence, [cut, *attempts[1:]]))
    table_section = part(document_of(run.scores), "Where wrong answers went wrong")
    counts = {name: column(table_section, name)[0].text for name in ("wrong", "cut from prompt", "misread", "unknown")}
    assert counts == {"wrong": "3", "cut from prompt": "1", "misread": "1", "unknown": "1"}
