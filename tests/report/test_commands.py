"""``judge``, ``score``, ``report`` and ``show`` as typed on a command line."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from memarena.cli.main import main
from memarena.log.records import QuestionAsked
from memarena.log.store import LogWriter, read_records

from ..support import golden_run
from ..support.logs import write_log

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run")


@pytest.fixture
def memarena(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command; its exit code, standard output and standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memarena", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), out, err

    return call


@pytest.mark.parametrize("output", ["table", "md", "json"])
def test_report_prints_every_form(memarena: Command, run_dir: Path, output: str) -> None:
    code, out, err = memarena("report", run_dir, "--format", output)
    assert (code, err) == (0, "")
    assert "bm25" in out
    if output == "json":
        assert json.loads(out)["runs"][0]["run_id"] == "run-test"


def test_report_takes_several_runs(memarena: Command, run_dir: Path) -> None:
    _, out, _ = memarena("report", run_dir, run_dir, "--format", "json")
    assert len(json.loads(out)["runs"]) == 2


def test_score_prints_the_dimensions(memarena: Command, run_dir: Path) -> None:
    code, out, _ = memarena("score", run_dir)
    assert code == 0
    assert "Dimensions" in out
    assert "Retrieval" not in out


def test_reports_work_while_the_run_goes_on_and_write_nothing(memarena: Command, run_dir: Path) -> None:
    before = len(list(read_records(run_dir)))
    with LogWriter(run_dir):
        assert memarena("report", run_dir)[0] == 0
        assert memarena("score", run_dir)[0] == 0
    assert len(list(read_records(run_dir))) == before


def test_a_run_that_has_only_just_begun_can_be_reported(memarena: Command, tmp_path: Path) -> None:
    records = [r for r in golden_run.records() if not isinstance(r, QuestionAsked) and r.kind != "run_ended"]
    code, out, _ = memarena("report", write_log(tmp_path / "begun", records))
    assert code == 0
    assert "running, or killed; 0 of 152 questions asked" in out


def test_judging_appends_verdicts_once_and_changes_no_figure(memarena: Command, run_dir: Path) -> None:
    before = memarena("report", run_dir, "--format", "json")[1]
    assert memarena("judge", run_dir)[1].startswith("62 verdicts appended by judge value")
    assert memarena("judge", run_dir)[1].startswith("0 verdicts appended")
    assert memarena("report", run_dir, "--format", "json")[1] == before


def test_show_lists_failures_of_a_cell_or_family_one_line_each(memarena: Command, run_dir: Path) -> None:
    _, out, _ = memarena("show", run_dir, "--failures", "--cell", "hazy@small/s1", "--family", "d7_qa")
    assert [line.split()[:4] for line in out.splitlines() if line.startswith("  ")] == [
        ["infra", "failed", "hazy@small/s1", "qa_1"],
        ["wrong", "hazy@small/s1", "qa_2", "d7_qa"],
    ]


def test_show_tells_the_story_of_a_question_in_one_cell_or_all_that_asked(memarena: Command, run_dir: Path) -> None:
    _, one, _ = memarena("show", run_dir, "--question", "temp_1", "--cell", "bm25@small/s3")
    assert one.count("Question temp_1 in ") == 1
    assert "On Tuesday, 14 January." in one
    _, every, _ = memarena("show", run_dir, "--question", "temp_1")
    assert every.count("Question temp_1 in ") == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "RUN", "--question", "nope"], "--question nope: no such question in RUN"),
        (["show", "RUN", "--question", "qa_1", "--cell", "x"], "--cell x: no such cell; there are: bm25@small/s1"),
        (["show", "RUN", "--failures", "--cell", "x"], "--cell x: no such cell"),
        (["show", "RUN", "--failures", "--family", "x"], "--family x: no question of this family; there are: d10_"),
        (["show", "RUN", "--question", "perm_1", "--cell", "bm25@extractive/s1"], "not asked yet"),
        (["show", "RUN"], "expected either --failures or --question ID"),
        (["show", "RUN", "--failures", "--question", "qa_1"], "expected either --failures or --question ID"),
        (["report", "RUN", "--format", "pdf"], "--format pdf: expected one of table, md, json"),
        (["score", "RUN", "--judge", "gpt"], "--judge gpt: no verdict by this judge in the log; there are: none"),
        (["judge", "RUN", "--judge", "gpt"], "--judge gpt: unknown judge; there is: value"),
        (["report", "EMPTY"], "EMPTY: no run log (run.sqlite) in this folder"),
        (["judge", "EMPTY"], "EMPTY: no run log (run.sqlite) in this folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    memarena: Command, run_dir: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    names = {"RUN": str(run_dir), "EMPTY": str(tmp_path / "empty")}
    code, out, err = memarena(*(names.get(a, a) for a in arguments))
    assert (code, out) == (2, "")
    for name, path in names.items():
        message = message.replace(name, path)
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
