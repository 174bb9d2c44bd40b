"""Tests ``memarena judge`` on the command line: its output, and a one-line error with the right exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.judging import JudgeError
from memarena.log.store import read_records
from memarena_dataset.errors import MemArenaError
from memarena_dataset.model import Family
from typer.testing import CliRunner

from ..support.judges import rules, scripted_judge
from ..support.logs import make_asked, make_cell, make_question, make_run, text_gold, write_log
from ..support.model_script import Script

CELL = make_cell("bm25")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    questions = [make_question(f"q{n}", Family.QA, text_gold("rain"), f"Why {n}?") for n in range(6)]
    return write_log(
        tmp_path / "run", make_run([CELL], questions, [], [make_asked(CELL, q, "rain") for q in questions])
    )


def test_a_complete_judging_prints_counts_and_cost(run_dir: Path) -> None:
    with scripted_judge(rules) as server:
        prices = ["--usd-per-mtok-in", "0.15", "--usd-per-mtok-out", "0.6", "--budget-usd", "1"]
        result = CliRunner().invoke(app, ["judge", str(run_dir), "--endpoint", server.url, *prices])
    assert result.exit_code == 0, result.output
    assert "6 verdicts and 0 grounds appended by judge gpt-4o-mini-2024-07-18" in result.output
    assert "600 + 120 tokens, $0.0002" in result.output
    scored = CliRunner().invoke(app, ["score", str(run_dir), "--judge", "gpt-4o-mini-2024-07-18"])
    assert scored.exit_code == 0, scored.output


def test_a_spent_budget_ends_with_the_open_count_and_code_3(run_dir: Path) -> None:
    with scripted_judge(rules) as server:
        result = CliRunner().invoke(app, ["judge", str(run_dir), "--endpoint", server.url, "--max-tokens", "1500"])
    assert result.exit_code == 3
    assert "stopped: the budget is spent" in result.output
    assert "still to be judged; the same command goes on" in result.output


def test_failures_of_the_judge_end_with_code_3_and_their_causes(run_dir: Path) -> None:
    with scripted_judge(lambda call: Script("Looks fine to me.")) as server:
        result = CliRunner().invoke(app, ["judge", str(run_dir), "--endpoint", server.url, "--tries", "1"])
    assert result.exit_code == 3
    assert "the judge gave no verdict on 6 answers (its reply cannot be read: 6)" in result.output


BAD = {
    "--endpoint nonsense": (["--endpoint", "nonsense"], "--endpoint nonsense: expected a URL"),
    "no such key": (
        ["--endpoint", "http://127.0.0.1:9", "--api-key-env", "NO_SUCH_KEY"],
        "no such environment variable",
    ),
    "a budget without prices": (["--endpoint", "http://127.0.0.1:9", "--budget-usd", "1"], "--usd-per-mtok-in"),
    "the value judge's name": (["--endpoint", "http://127.0.0.1:9", "--judge", "value"], "choose another name"),
    "a judge without endpoint": (["--judge", "gpt"], "needs --endpoint"),
    "labels without a sample": (["--labels", "x.json"], "expected --of SAMPLE.json"),
    "two things at once": (["--calibrate", "--sample", "x.json"], "expected one of them at a time"),
    "unknown phrasings": (["--calibrate", "--phrasings", "other"], "--phrasings other: expected one of"),
    "no labels file": (["--labels", "x.json", "--of", "nowhere.json"], "nowhere.json: cannot be read"),
}


IDLE: dict[str, tuple[list[str], str]] = {
    "a model without its server": (["--model", "x"], "--model: expected --endpoint with it"),
    "repeats of a judge that always says the same": (["--repeat", "5"], "--repeat: expected --endpoint"),
    "grounds that nobody names": (["--no-buckets"], "--buckets: expected --endpoint"),
    "the default, typed": (["--concurrency", "32"], "--concurrency: expected --endpoint"),
    "a budget that nothing is spent of": (["--max-tokens", "9"], "--max-tokens: expected --endpoint"),
    "a format of nothing": (
        ["--format", "nonsense"],
        "--format: expected --calibrate or --labels or --answers with it",
    ),
    "a data set that is not read": (["--dataset", "/nope"], "--dataset: expected --calibrate or --answers with it"),
    "phrasings that are not synthetic": (["--phrasings", "nope"], "--phrasings: expected --calibrate with it"),
    "a sample that nobody labelled": (["--of", "x.json"], "--of: expected --labels with it"),
    "a seed that nothing is drawn by": (["--seed", "1"], "--seed: expected --calibrate or --sample with it"),
    "a server that is not asked": (
        ["--sample", "x.json", "--endpoint", "http://127.0.0.1:9"],
        "--endpoint: does nothing with --sample",
    ),
    "repeats of a calibration": (
        ["--calibrate", "--endpoint", "http://127.0.0.1:9", "--repeat", "2"],
        "--repeat: does nothing with --calibrate",
    ),
    "a judge that is not calibrated": (["--calibrate", "--judge", "gpt"], "--judge: with --calibrate expected"),
}


@pytest.mark.parametrize("name", IDLE)
def test_a_flag_without_effect_is_refused(name: str, run_dir: Path) -> None:
    arguments, message = IDLE[name]
    result = CliRunner().invoke(app, ["judge", str(run_dir), *arguments])
    assert isinstance(result.exception, JudgeError)
    assert str(result.exception).startswith(message)
    assert "\n" not in str(result.exception)
    assert list(read_records(run_dir, "verdict")) == []


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_one_line_that_names_the_flag(name: str, run_dir: Path) -> None:
    arguments, message = BAD[name]
    result = CliRunner().invoke(app, ["judge", str(run_dir), *arguments])
    assert isinstance(result.exception, MemArenaError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_a_refused_key_gives_exit_code_2_without_a_traceback(run_dir: Path) -> None:
    with scripted_judge(lambda call: Script(message="bad key", status=401)) as server:
        command = [sys.executable, "-m", "memarena", "judge", str(run_dir), "--endpoint", server.url]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("error: --api-key-env")
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_judge_that_only_failed_is_reported_as_an_infrastructure_failure(run_dir: Path) -> None:
    """Every reply is prose, also for the control: no verdict, a range instead of a figure, and the judge at fault."""
    with scripted_judge(lambda call: Script("Looks fine to me.")) as server:
        flags = ["--endpoint", server.url, "--judge", "prose", "--tries", "1", "--longest-wait-s", "0"]
        assert CliRunner().invoke(app, ["judge", str(run_dir), *flags]).exit_code == 3
    result = CliRunner().invoke(app, ["report", str(run_dir), "--judge", "prose"])
    assert result.exit_code == 0, result.output
    assert "no verdict by judge prose: 6 questions (it failed: malformed 6)" in " ".join(result.stdout.split())
    assert "judge prose: malformed: no usable reply" in " ".join(result.stdout.split())
    assert "0.0…100.0" in result.stdout
