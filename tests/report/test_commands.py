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


@pytest.mark.parametrize("output", ["table", "md", "latex", "html", "json"])
def test_report_prints_every_form_and_writes_the_same_to_a_file(
    memarena: Command, run_dir: Path, tmp_path: Path, output: str
) -> None:
    code, out, err = memarena("report", run_dir, "--format", output)
    assert (code, err) == (0, "")
    assert "bm25" in out
    if output == "json":
        assert json.loads(out)["runs"][0]["run_id"] == "run-test"
    assert memarena("report", run_dir, "--format", output, "--out", tmp_path / "report") == (0, "", "")
    assert (tmp_path / "report").read_text(encoding="utf-8") == out


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


def test_every_figure_of_the_families_can_be_traced_to_answers_that_give_it(memarena: Command, run_dir: Path) -> None:
    report = json.loads(memarena("report", run_dir, "--format", "json")[1])
    figures = [
        (row["label"], part)
        for row in report["runs"][0]["rows"]
        for part in row["slices"]
        # The owner's own items stand apart in the figure of D6.
        if part["by"] in ("family", "dimension") and part["score"]["value"] is not None and "D6" not in part["key"]
    ]
    figures = [(label, part) for label, part in figures if part["key"] != "d4_permission"]
    assert len(figures) > 40
    for label, part in figures[::7]:
        counts = part["counts"]
        asked = counts["correct"] + counts["wrong"] + counts["backend_failed"]
        _, out, _ = memarena("show", run_dir, "--answers", "--cell", label, f"--{part['by']}", part["key"])
        assert out.startswith(f"{counts['correct']} of {asked} questions asked ended right"), (label, part)


def test_the_command_that_a_table_names_works(memarena: Command, run_dir: Path) -> None:
    _, out, _ = memarena("report", run_dir, "--format", "md")
    commands = [line.split("`")[1] for line in out.splitlines() if line.startswith("- answers behind a row: `")]
    assert len(commands) > 8
    for command in commands:
        code, listed, err = memarena(*command.replace("RUN", str(run_dir)).split()[1:])
        assert (code, err) == (0, ""), command
        assert "questions asked ended right" in listed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cell", "bm25@small", "--dimension", "D2"], "2 of 3 questions asked ended right (66.7%)"),
        (["--cell", "bm25@small/s2", "--dimension", "D2"], "1 of 1 questions asked ended right (100.0%)"),
        (["--cell", "hazy@small", "--outcome", "backend_failed"], "0 of 2 questions asked ended right (0.0%)"),
        (["--cell", "hazy@small", "--family", "d7_qa"], "0 of 2 questions asked ended right (0.0%), 1 failed for"),
        (["--cell", "hazy@small", "--stage", "not_retrieved"], "0 of 4 questions asked ended right (0.0%)"),
        (["--cell", "oracle@small", "--label", "disclosed"], "8 of 14 questions asked ended right (57.1%)"),
        (["--cell", "bm25@small", "--difficulty", "easy"], "6 of 6 questions asked ended right (100.0%)"),
    ],
)
def test_answers_are_chosen_by_what_figures_are_over(
    memarena: Command, run_dir: Path, arguments: list[str], expected: str
) -> None:
    code, out, _ = memarena("show", run_dir, "--answers", *arguments)
    assert code == 0
    assert out.startswith(expected), out.splitlines()[0]
    lines = [line for line in out.splitlines() if line.startswith("  ")]
    assert len(lines) == int(expected.split()[2])


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
        (["show", "RUN"], "expected one of --failures, --answers and --question ID"),
        (
            ["show", "RUN", "--failures", "--question", "qa_1"],
            "expected one of --failures, --answers and --question ID",
        ),
        (["report", "RUN", "--format", "pdf"], "--format pdf: expected one of table, md, latex, html, json"),
        (["score", "RUN", "--format", "html"], "--format html: expected one of table, md, json"),
        (["report", "RUN", "--out", "EMPTY"], "--out EMPTY: expected a file, this is a folder"),
        (["report", "RUN", "--out", "RUN/run.sqlite"], "this is the name of a run's log, which is never overwritten"),
        (["report", "RUN", "--out", "RUN/no/r.md"], "--out RUN/no/r.md: cannot be written: No such file"),
        (["report", "RUN", "--against", "me"], "--against me: expected published; two runs are compared by"),
        (
            ["show", "RUN", "--answers", "--dimension", "D9"],
            "--dimension D9: no question of this dimension; there are: D1",
        ),
        (
            ["show", "RUN", "--answers", "--stage", "x"],
            "--stage x: no question has it; there are: misread, not_retrieved",
        ),
        (["show", "RUN", "--question", "qa_1", "--family", "d7_qa"], "--family: goes with --failures or --answers"),
        (["score", "RUN", "--judge", "gpt"], "--judge gpt: no verdict by this judge in the log; there are: none"),
        (["judge", "RUN", "--judge", "gpt"], "--judge gpt: unknown judge; "),
        (["report", "EMPTY"], "EMPTY: no run log (run.sqlite) in this folder"),
        (["judge", "EMPTY"], "EMPTY: no run log (run.sqlite) in this folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    memarena: Command, run_dir: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    names = {"RUN": str(run_dir), "EMPTY": str(tmp_path / "empty")}
    code, out, err = memarena(*(a.replace("RUN", names["RUN"]).replace("EMPTY", names["EMPTY"]) for a in arguments))
    assert (code, out) == (2, "")
    for name, path in names.items():
        message = message.replace(name, path)
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
