"""Tests the marks of rows that answer without the reader or failed many questions."""

from __future__ import annotations

import json
import re

import pytest
from memarena.cli.scores import report_run
from memarena.log.records import AnyRecord, Question
from memarena.report.brief import brief_document
from memarena.report.document import report_document
from memarena.report.render.html import to_html
from memarena.report.render.json import to_json
from memarena.report.report_input import ReportInput
from memarena_dataset.model import Family

from ..support.golden_reports import plain
from ..support.logs import cloze, make_asked, make_call, make_cell, make_question, make_reader, make_run, write_log

QUESTIONS = [
    make_question(f"q{n:02d}", Family.CLOZE, cloze("B", "loom", "kiln", "lathe", "press", "oven"), "A ____ arrives.")
    for n in range(20)
]
CELLS = {name: make_cell(name, "small", "s1") for name in ("once", "never", "refused", "twice", "poorly", "nearly")}


def asked(name: str, question: Question) -> list[AnyRecord]:
    """Return the attempts of all backends at a question, with their model calls."""
    cell, ident = CELLS[name], question.instance.instance_id
    ids = [f"{name}-{ident}-{n}" for n in range({"never": 0, "twice": 2}.get(name, 1))]
    if name in ("poorly", "nearly") and int(ident[1:]) < {"poorly": 2, "nearly": 1}[name]:
        return [make_asked(cell, question, status="backend_failed", cause="Search: INTERNAL: gone")]
    calls = [make_call(i, cell, question, ttft_ms=40, server_ms=30) for i in ids]
    if name == "refused" and ident == "q03":
        calls = [call.model_copy(update={"status": 400, "first_content_ns": None}) for call in calls]
    record = make_asked(cell, question, "B) kiln", call_ids=ids)
    assert record.answer is not None
    answer = record.answer.model_copy(update={"model_calls": len(ids)})
    return [*calls, record.model_copy(update={"answer": answer})]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ReportInput:
    """A run of six memories that call the reader once, never, twice, and so on."""
    answers = [record for name in CELLS for question in QUESTIONS for record in asked(name, question)]
    records = make_run(list(CELLS.values()), QUESTIONS, [], answers, readers=[make_reader()])
    return report_run(write_log(tmp_path_factory.mktemp("use") / "run", records))


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_the_grid_has_calls_and_tokens_and_marks_answers_without_the_reader(run: ReportInput) -> None:
    grid = next(part for part in report_document([run]).sections if part.title == "Main grid")
    assert grid.table is not None
    titles = [column.title for column in grid.table.columns]
    cells = [[cell.text for cell in row] for row in grid.table.rows]
    use_by_memory = {row[0]: (row[titles.index("calls")], row[titles.index("tokens")]) for row in cells}
    assert use_by_memory["once"] == ("1.00", "312") and use_by_memory["twice"] == ("2.00", "624")
    assert use_by_memory["never §"][0] == "0.00" and use_by_memory["refused §"] == ("0.95", "296")
    assert [row[0] for row in cells][-2:] == ["never §", "refused §"] and len(cells) - 2 in grid.table.breaks
    skipped = "never@small 20 of 20, refused@small 1 of 20"
    assert f"§ answers without any call of the reader: {skipped}; set apart, never best" in grid.notes
    assert "¶ more than 5% of the questions asked failed: poorly@small 2 of 20 (10.0%)" in grid.notes
    assert "poorly ¶" in use_by_memory and "nearly" in use_by_memory


def test_all_formats_state_the_reader_use_and_json_has_it_as_data(run: ReportInput) -> None:
    full, brief = report_document([run]), brief_document([run])
    for text in (text_of(to_html([run])), text_of(plain(full)), text_of(plain(brief))):
        assert "never §" in text and "poorly ¶" in text
        assert "never@small 20 of 20" in text and "poorly@small 2 of 20 (10.0%)" in text
    verdict = next(str(line) for part in brief.sections if part.title == "Findings" for line in part.lines)
    assert "once" in verdict and "never" not in verdict
    rows = {row["backend"]: row for row in json.loads(to_json([run]))["runs"][0]["rows"]}
    assert {name: row["marks"] for name, row in rows.items()} == {
        "once": [], "twice": [], "nearly": [],
        "never": ["without_reader"], "refused": ["without_reader"], "poorly": ["many_failed"],
    }  # fmt: skip
    assert rows["refused"]["reader_use"] == {"answers": 20, "without_call": 1, "calls": 0.95, "tokens": 296.4}
    assert rows["poorly"]["without_answer"] == 2
