"""Tests the subcommands of ``memarena dataset``: their output and their errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from memarena.cli.dataset import app
from memarena_dataset.programs import run_guarded


class Result(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs ``memarena dataset …`` like the command line, errors included."""

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["memarena dataset", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run_guarded(app)
        out, err = capsys.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    return call


def test_a_valid_data_set_is_reported_as_valid(run: Run, example: Path) -> None:
    result = run("validate", example, "--profile", "full")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{example}: valid (full): 0 faults, 0 warnings\n"


def test_golds_in_text_give_a_warning_with_the_remedy(run: Run, spoilable: Any) -> None:
    spoilable.question("qa_0001", lambda row: row["ground_truth"].pop("values"))
    result = run("validate", spoilable.path)
    assert result.code == 0
    (line,) = result.out.splitlines()[:-1]
    assert line.startswith("warning: eval_instances: 1 of ")
    assert "ground_truth.values" in line and "--endpoint" in line


def test_each_fault_gives_one_line_and_exit_code_1(run: Run, spoilable: Any) -> None:
    spoilable.session("sess_0004", lambda row: row["turns"][2].update(speaker_id="tomas_lindqvist"))
    spoilable.question("qa_0001", lambda row: row.update(evidence_session_ids=["sess_9999"]))
    spoilable.session("sess_0005", lambda row: row["turns"][0].update(text=" "))
    result = run("validate", spoilable.path)
    assert result.code == 1
    assert result.out.splitlines() == [
        "eval_instances/d7_qa.jsonl:1: evidence_session_ids: session 'sess_9999' does not exist in the corpus",
        "corpus_sessions.jsonl:4: turns.2.speaker_id: 'tomas_lindqvist' is not one of the participants",
        "warning: corpus_sessions.jsonl:5: turns.0.text: empty",
    ]
    assert result.err == f"{spoilable.path}: not valid (structural): 2 faults, 1 warning\n"


def test_warnings_alone_do_not_fail(run: Run, spoilable: Any) -> None:
    spoilable.session("sess_0005", lambda row: row["turns"][0].update(text=" "))
    assert run("validate", spoilable.path).code == 0


def test_validate_prints_json(run: Run, spoilable: Any) -> None:
    spoilable.session("sess_0004", lambda row: row.update(location_id="loc_moon"))
    result = run("validate", spoilable.path, "--format", "json")
    report = json.loads(result.out)
    assert result.code == 1
    assert (report["valid"], report["profile"]) == (False, "structural")
    assert report["errors"] == [
        {
            "check": "session",
            "file": "corpus_sessions.jsonl",
            "reason": "'loc_moon' is not in locations.json",
            "line": 4,
            "field": "location_id",
        }
    ]


def test_stats_prints_a_table_json_and_markdown(run: Run, example: Path) -> None:
    table_output = run("stats", example)
    assert table_output.code == 0
    assert "16 / 140" in table_output.out
    assert "[min, max]" in table_output.out
    assert json.loads(run("stats", example, "--format", "json").out)["turns"] == 140
    assert "| Sessions / turns | 16 / 140 |" in run("stats", example, "--format", "md").out


def test_import_prints_every_note_and_the_counts(run: Run, tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[1] / "data" / "longmemeval" / "six_questions.json"
    result = run("import", "longmemeval", source, "--out", tmp_path / "out")
    assert result.code == 0
    assert len(result.out.splitlines()) == 7
    assert "5 questions imported" in result.out
    assert run("validate", tmp_path / "out").code == 0


def test_locomo_is_imported_from_the_command_line(run: Run, locomo_file: Path, tmp_path: Path) -> None:
    result = run("import", "locomo", locomo_file, "--out", tmp_path / "out")
    assert result.code == 0
    assert "10 speakers, 128 sessions, 2,760 turns, 999 questions in the file, 999 questions imported" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("validate", "{tmp}/nowhere"), "nowhere: no such folder"),
        (("validate", "{tmp}/file.json"), "file.json: not a folder"),
        (("validate", "{tmp}/empty"), "corpus_sessions.jsonl is missing"),
        (("stats", "{tmp}/empty"), "corpus_sessions.jsonl is missing"),
        (("import", "locomo", "{tmp}/nowhere", "--out", "{tmp}/out"), "nowhere: cannot be read"),
        (("import", "locomo", "{tmp}/file.json", "--out", "{tmp}/out"), "file.json: not JSON"),
        (("import", "longmemeval", "{tmp}/file.json", "--out", "{tmp}/out"), "file.json: not JSON"),
        (("import", "locomo", "{tmp}/file.json", "--out", "{tmp}/full"), "full: exists and is not empty"),
        (("import", "longmemeval", "{tmp}/empty", "--out", "{tmp}/out"), "empty: cannot be read: Is a directory"),
    ],
)
def test_bad_input_gives_one_line_and_exit_code_2(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    (tmp_path / "file.json").write_text("nonsense")
    result = run(*(argument.format(tmp=tmp_path) for argument in arguments))
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_unknown_profile_is_named(run: Run, example: Path) -> None:
    result = run("validate", example, "--profile", "fullest")
    assert result.code == 2
    assert "fullest" in result.err
