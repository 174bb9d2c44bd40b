"""Tests tables of a run: rows, Arrow, data frames, files, and refusals."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import memarena
import pyarrow as pa
import pytest
from memarena.log.store import LogError
from memarena.scoring.errors import ScoringError
from memarena.tables.columns import TABLES
from memarena.tables.errors import TableError
from memarena.tables.files import export
from memarena.tables.run import Run
from memarena_dataset.model import Family
from pyarrow import parquet

from ..support.logs import make_asked, make_cell, make_question, make_run, text_gold, write_log

ROOT = Path(__file__).resolve().parents[2]
WORDS = {"drink": "tea", "spread": "jam"}
GUIDE = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one cell and eleven questions with verdicts of a judge with a model in its log."""
    return shutil.copytree(ROOT / "tests" / "golden" / "judged_run", tmp_path_factory.mktemp("judged") / "run")


@pytest.fixture(scope="module")
def judged(folder: Path) -> Run:
    """That run, read."""
    return memarena.open_run(folder)


def test_what_is_counted_is_what_the_scores_count(judged: Run) -> None:
    (cell,) = judged.cells()
    answers = list(judged.answers())
    assert cell["planned"] == len(answers) == len(list(judged.questions())) == 11
    assert cell["correct"] == sum(answer["outcome"] == "correct" for answer in answers)
    (d1,) = (score for score in judged.scores() if score["figure"] == "D1")
    assert d1["value"] == judged.scored.scores.rows[0].cells[0].metrics["D1"].value


def test_times_and_verdicts_join_with_answers(judged: Run) -> None:
    answer_keys = {
        (answer["cell_id"], answer["instance_id"]) for answer in judged.answers() if answer["answer"] is not None
    }
    assert {(timing["cell_id"], timing["instance_id"]) for timing in judged.timings()} == answer_keys
    judges = {verdict["judge"] for verdict in judged.verdicts()}
    assert {"value", "acme"} <= judges


def test_a_file_that_is_no_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LogError, match=f"^{re.escape(str(tmp_path / 'file'))}: no run log: expected"):
        memarena.open_run(tmp_path / "file")


def test_a_run_is_scored_by_its_path_however_that_is_given(judged: Run, folder: Path) -> None:
    for path in (folder, str(folder), str(folder / "run.sqlite")):
        assert memarena.evaluate(path, resamples=0).scores.run_id == judged.scored.scores.run_id


def test_another_judge_settles_other_outcomes(folder: Path) -> None:
    with pytest.raises(ScoringError, match="no verdict by this judge"):
        _ = memarena.open_run(folder, "nobody").scored
    assert memarena.open_run(folder, "acme").scored.scores.judge == "acme"


@pytest.mark.parametrize("table", [name for name in TABLES if name != "reviews"])
def test_right_answers_are_told_only_when_asked_for(judged: Run, table: str) -> None:
    gold_columns = {column.name for column in TABLES[table] if column.gold}
    assert not gold_columns & set(next(judged.rows(table)))
    assert gold_columns <= set(next(judged.rows(table, gold=True)))


@pytest.mark.parametrize("table", TABLES)
def test_arrow_and_pandas_hold_the_rows(judged: Run, table: str) -> None:
    rows = list(judged.rows(table, gold=True))
    arrow, frame = judged.table(table, gold=True), judged.frame(table, gold=True)
    assert arrow.to_pylist() == rows
    assert list(frame.columns) == arrow.schema.names == [column.name for column in TABLES[table]]
    frame_rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert frame_rows == rows


def test_a_column_without_any_value_keeps_its_type(judged: Run) -> None:
    assert judged.table("timings").schema.field("server_prompt_ms").type == pa.float64()
    assert judged.frame("timings")["server_prompt_ms"].dtype.name == "Float64"


def test_files_hold_the_rows(judged: Run, tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "parquet"):
        paths = export(judged, tmp_path, form, gold=True)
        assert sorted(path.name for path in paths) == sorted(f"{table}.{form}" for table in TABLES)
    rows = list(judged.answers(gold=True))
    assert [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()] == rows
    assert parquet.read_table(tmp_path / "answers.parquet").to_pylist() == rows
    with (tmp_path / "answers.csv").open(newline="") as file:
        csv_rows = list(csv.DictReader(file))
    assert csv_rows == [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]


def test_an_answer_is_no_formula_in_a_csv_file(tmp_path: Path) -> None:
    cell, question = make_cell("bm25"), make_question("drink", Family.QA, text_gold("tea"), "Which?")
    answer = '=HYPERLINK("http://x")\x1b[2J'
    write_log(tmp_path / "run", make_run([cell], [question], [], [make_asked(cell, question, answer)]))
    export(memarena.open_run(tmp_path / "run"), tmp_path, "csv", ["answers"])
    with (tmp_path / "answers.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["answer"] == '\'=HYPERLINK("http://x")\ufffd[2J'


def test_a_question_that_was_not_asked_has_no_outcome(tmp_path: Path) -> None:
    cell = make_cell("bm25")
    drink, spread = (make_question(name, Family.QA, text_gold(word), "Which?") for name, word in WORDS.items())
    write_log(tmp_path / "run", make_run([cell], [drink, spread], [], [make_asked(cell, drink, "tea")], ended=None))
    answers = {answer["instance_id"]: answer for answer in memarena.open_run(tmp_path / "run").answers()}
    assert (answers["spread"]["outcome"], answers["spread"]["answer"]) == (None, None)
    assert answers["drink"]["outcome"] == "correct"


def test_what_cannot_be_written_is_said_and_leaves_what_was_there(judged: Run, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="table nothing: unknown; one of cells"):
        export(judged, tmp_path, "csv", ["nothing"])
    with pytest.raises(TableError, match="--format xlsx: one of"):
        export(judged, tmp_path, "xlsx")  # type: ignore[arg-type]
    blocked = tmp_path / "file"
    blocked.write_text("mine")
    with pytest.raises(TableError, match="--out"):
        export(judged, blocked, "csv")
    assert blocked.read_text() == "mine"


def test_the_command_writes_the_same(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memarena", "export", str(folder / "run.sqlite"), "--out", str(tmp_path)]
    result = subprocess.run([*command, "--table", "cells"], capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (0, f"{tmp_path / 'cells.csv'}\n"), result.stderr
    bad = subprocess.run([*command, "--format", "xlsx"], capture_output=True, text=True, timeout=60, check=False)
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
    assert "--format xlsx" in bad.stderr


def test_the_guide_has_every_column() -> None:
    for table, columns in TABLES.items():
        _, _, part = GUIDE.partition(f"### `{table}`\n")
        part, _, _ = part.partition("\n### ")
        rows = re.findall(r"^\| `(\w+)`(\*?) \| (\w+) \| (.*?) \|$", part, flags=re.MULTILINE)
        assert rows == [(column.name, "*" if column.gold else "", column.type, column.meaning) for column in columns]


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, memarena; print([m for m in sys.modules if m.startswith('memarena.')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "[]\n"
