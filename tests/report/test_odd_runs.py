"""Tests reports of runs that lack something: every format is valid, and every command that they name works."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from memarena.cli.main import main
from memarena.cli.scores import report_run
from memarena.log.records import AnyRecord, Question, QuestionAsked, RunStarted
from memarena.report.document import report_document
from memarena.report.render.html import to_html
from memarena.report.render.json import committed_schema, to_json
from memarena.report.render.latex import to_latex
from memarena.report.render.markdown import to_markdown
from memarena.report.report_input import ReportInput

from ..support import golden_run
from ..support.golden_reports import plain
from ..support.logs import make_asked, make_cell, make_run, write_log
from .latex_reading import check, environments

CELL = make_cell("bm25")
ORACLE = make_cell("oracle", diagnostic=True)
QUESTIONS = list(golden_run.QUESTIONS)
NO_D6 = [q for q in QUESTIONS if q.instance.dimension.value != "D6"]


def answered(cell_questions: list[Question], answer: str | None = None) -> list[AnyRecord]:
    return [make_asked(CELL, q, answer or golden_run.RIGHT[q.instance.instance_id]) for q in cell_questions]


def failed(questions: list[Question]) -> list[AnyRecord]:
    return [
        make_asked(CELL, q, status="infra_failed", cause="reader: connection refused", search_ok=False)
        for q in questions
    ]


RUNS: dict[str, Callable[[], list[AnyRecord]]] = {
    "only begun": lambda: make_run([CELL], QUESTIONS, golden_run.EVIDENCE, [], ended=None),
    "half way": lambda: make_run([CELL], QUESTIONS, golden_run.EVIDENCE, answered(QUESTIONS[:9]), ended=None),
    "one cell": lambda: make_run([CELL], QUESTIONS, golden_run.EVIDENCE, answered(QUESTIONS)),
    "one question": lambda: make_run([CELL], QUESTIONS[:1], [], answered(QUESTIONS[:1])),
    "no D6": lambda: make_run([CELL], NO_D6, golden_run.EVIDENCE, answered(NO_D6, "no")),
    "nothing but a diagnostic": lambda: make_run(
        [ORACLE],
        QUESTIONS,
        golden_run.EVIDENCE,
        [make_asked(ORACLE, q, golden_run.RIGHT[q.instance.instance_id]) for q in QUESTIONS],
    ),
    "infrastructure failures only": lambda: make_run([CELL], QUESTIONS, [], failed(QUESTIONS), ended="incomplete"),
    "no times": lambda: make_run([make_cell("bm25", timing=False)], QUESTIONS, [], answered(QUESTIONS), floor=False),
}


@pytest.fixture(params=RUNS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_log(tmp_path / "run", RUNS[request.param]())


def test_every_format_is_valid_and_follows_its_schema(folder: Path) -> None:
    run = report_run(folder, traces=True)
    document = report_document([run])
    assert "Main grid" in to_markdown(document)
    assert max(len(line) for line in plain(document).splitlines() if "memarena show" not in line) <= 120
    check(to_latex(document))
    environments(to_latex(document))
    jsonschema.Draft202012Validator(_schema()).validate(_parsed(to_json([run])))
    page = to_html([run])
    assert page.count("<section") == page.count("</section>")
    assert "None" not in page.replace("None of", "")
    assert "nan" not in page.split("</style>")[1].split()


def test_every_command_that_a_report_names_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [part.trace for part in report_document([report_run(folder)]).sections if part.trace]
    for command in commands:
        monkeypatch.setattr(sys, "argv", command.replace("RUN", str(folder)).split())
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert (ended.value.code or 0, err) == (0, ""), command
        assert not out.startswith("0 of 0"), command


def test_the_schema_refuses_an_invalid_report(tmp_path: Path) -> None:
    content = _parsed(to_json([report_run(write_log(tmp_path / "run", RUNS["one cell"]()))]))
    validator = jsonschema.Draft202012Validator(_schema())
    validator.validate(content)
    row = content["runs"][0]["rows"][0]
    for broken in ({**row, "surprise": 1}, {k: v for k, v in row.items() if k != "metrics"}):
        content["runs"][0]["rows"][0] = broken
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(content)


def _schema() -> dict[str, object]:
    return dict(json.loads(committed_schema()))


def _parsed(text: str) -> dict[str, list[dict[str, list[dict[str, object]]]]]:
    return dict(json.loads(text))


def test_a_run_without_a_headline_gives_ranges_and_marks_nothing_best(tmp_path: Path) -> None:
    run = report_run(write_log(tmp_path / "run", RUNS["infrastructure failures only"]()))
    text = plain(report_document([run]))
    assert "0.0…100.0" in text
    assert "no headline until" in text


def test_runs_over_other_data_never_share_a_table_or_a_figure(tmp_path: Path) -> None:
    run = report_run(shutil.copytree(golden_run.SMALL_RUN, tmp_path / "one"), traces=True)
    run_over_other_data = _over_other_data(tmp_path)
    page = to_html([run, run_over_other_data])
    assert page.count("<h3") > 30
    titles = [part.title for part in report_document([run, run_over_other_data]).sections]
    assert "Main grid, run 1" in titles
    assert "Main grid, run 2" in titles
    assert "Main grid" not in titles
    together = [part.title for part in report_document([run, run]).sections]
    assert [title for title in together if title.startswith("Main grid")] == ["Main grid"]
    for name in ("fig-recall-run-1", "fig-recall-run-2", "fig-privacy-run-1"):
        assert f'id="{name}"' in page


def _over_other_data(tmp_path: Path) -> ReportInput:
    first, *others = golden_run.records()
    assert isinstance(first, RunStarted)
    data = first.manifest.dataset.model_copy(update={"name": "mountain", "sha256": "cd" * 32})
    changed = first.model_copy(update={"manifest": first.manifest.model_copy(update={"dataset": data})})
    assert any(isinstance(record, QuestionAsked) for record in others)
    return report_run(write_log(tmp_path / "other", [changed, *others]), traces=True)
