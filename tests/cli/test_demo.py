"""The demonstration's command: its first screen, its progress, and that it goes on where it was stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memarena.cli import demo_lacking
from memarena.cli.demo import QUICK, SLOW, Part, _parts, _run
from memarena.cli.demo_lacking import lacking
from memarena.cli.demo_progress import DemoDisplay, PartCosts
from memarena.cli.demo_questions import DemoQuestions
from memarena.cli.scores import report_run
from memarena.execution.backends.manifests import backends_by_name
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import ReaderConfig
from memarena.execution.planning.progress import read_progress
from memarena.log.store import log_path
from memarena.readers.embedded import Weights
from memarena.readers.errors import ReaderError
from memarena.report.brief_demo import demo_document
from memarena.report.render.terminal import count_lines, print_document
from memarena.report.report_input import ReportInput

from ..support import grid_run
from ..support.logs import write_log

ROOT = Path(__file__).parents[2]


def test_the_first_screen_takes_forty_lines_of_a_hundred_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = report_run(write_log(tmp_path / "run", grid_run.records(12, prompt_words=4)))
    rows = {row.label: row for row in run.scores.rows}

    def only(*labels: str) -> ReportInput:
        chosen = run.scores.model_copy(update={"rows": tuple(rows[label] for label in labels)})
        return type(run)(chosen, run.provenance, run.costs, run.questions)

    everything = only(*(f"{name}@small-0.6b" for name in ("bm25", "vanilla", "oracle")))
    llm = only(*(f"{name}@large-8b" for name in ("bm25", "vanilla", "oracle", "memsearch")))
    page = Path("runs/demo/report.html")
    document = demo_document(everything, only("memsearch@small-0.6b"), llm, page=page, folder=page.parent, left_out={})
    assert count_lines(document, 100) <= 40
    print_document(document, width=100)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    for name in ("oracle", "bm25", "vanilla", "memsearch"):
        assert sum(line.startswith(name) for line in text.splitlines()) == 1
    assert str(page) in text
    counts = rows["bm25@large-8b"].counts
    assert f"{counts.correct}/{counts.asked}" in text
    verdict = next(line for line in text.splitlines() if "Right answers" in line)
    assert "memsearch" not in verdict, "it was asked other questions"
    splits = [row.errors for row in llm.scores.rows if row.errors is not None]
    wrong = sum(e.not_ingested + e.not_retrieved + e.cut_from_prompt + e.misread for e in splits)
    assert f"of its {wrong} wrong answers" in " ".join(text.split())


def test_what_is_not_installed_is_left_out_of_the_screen_which_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = report_run(write_log(tmp_path / "run", grid_run.records(12, prompt_words=4)))
    names = {f"{name}@small-0.6b" for name in ("bm25", "vanilla", "oracle")}
    rows = tuple(row for row in run.scores.rows if row.label in names)
    quick = type(run)(run.scores.model_copy(update={"rows": rows}), run.provenance, run.costs, run.questions)
    how = {"memsearch": "pip install one", "LLM": "pip install other"}
    page = Path("runs/demo/report.html")
    document = demo_document(quick, None, None, page=page, folder=page.parent, left_out=how, made=False)
    assert count_lines(document, 100) <= 40
    print_document(document, width=100)
    text = capsys.readouterr().out
    assert "left out  memsearch, not installed: pip install one\n" in text
    assert "left out  LLM, not installed: pip install other\n" in text
    assert "made just now" not in text
    assert "reader " not in text.partition("Which memory")[2].partition("Words")[0]
    assert "TTFT, LLM" not in text and "seldom gives" not in text


def test_the_demonstration_runs_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = DemoQuestions(("a", "b"), ("a",), ("a",), 1)

    def parts() -> dict[str, tuple[str, ...]]:
        made = _parts(tmp_path, questions, lacking(SLOW))
        return {part.name: tuple(getattr(each, "name", str(each)) for each in part.config.backends) for part in made}

    assert parts() == {"all": QUICK, "memsearch": (SLOW,), "llm": (*QUICK, SLOW)}
    without = {name: found for name, found in backends_by_name().items() if name != SLOW}
    monkeypatch.setattr(demo_lacking, "backends_by_name", lambda: without)
    assert lacking(SLOW).slow == "pip install 'memarena[memsearch]'"
    assert parts() == {"all": QUICK, "llm": QUICK}

    def no_weights() -> Weights:
        raise ReaderError("no weights")

    monkeypatch.setattr(demo_lacking, "find_weights", no_weights)
    assert parts() == {"all": QUICK}


def test_without_a_terminal_progress_is_a_few_lines_none_of_them_twice(capsys: pytest.CaptureFixture[str]) -> None:
    display = DemoDisplay()
    display.start()
    display.plan([PartCosts(3, 0.1, 0)])
    display.part(PartCosts(3, 0.1, 0))
    for name in ("bm25@extractive/s1", "bm25@extractive/s1", "vanilla@extractive/s1"):
        display.cell(name, 3)
        for _ in range(3):
            display.advance("question")
    display.stop()
    assert capsys.readouterr().err.splitlines() == ["bm25, extractive", "vanilla, extractive"]


def test_a_part_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    config = RunConfig(
        dataset=ROOT / "tests" / "data" / "example",
        backends=("vanilla",),
        readers=(ReaderConfig(spec="extractive"),),
        limit=3,
        order_seed=1,
        floor_samples=0,
    )
    part = Part("all", config, PartCosts(3, 0.1, 0))
    assert _run(part, tmp_path / "run", DemoDisplay()).reason == "completed"
    before = log_path(tmp_path / "run").stat().st_mtime_ns
    assert _run(part, tmp_path / "run", DemoDisplay()).reason == "completed"
    assert log_path(tmp_path / "run").stat().st_mtime_ns == before


def test_a_demonstration_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """Stopped among the first run's questions; with --resume it is the same run that goes on."""
    out = tmp_path / "demo"
    first = _start(out)
    _wait_for(lambda: _answered(out / "all") > 5, first)
    first.terminate()
    _, told = first.communicate(timeout=60)
    assert first.returncode == 130
    assert told.splitlines()[-1] == f"interrupted; resume with: memarena demo --out {out} --resume"
    answered, log = _answered(out / "all"), _run_id(out / "all")
    second = _start(out, "--resume")
    _wait_for(lambda: _answered(out / "all") > answered, second)
    second.terminate()
    second.communicate(timeout=60)
    assert _run_id(out / "all") == log


def test_a_demonstration_that_is_not_there_cannot_be_resumed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memarena", "demo", "--resume", "--out", str(tmp_path / "x")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, f"error: --resume: {tmp_path / 'x'} holds no demonstration\n")


def _start(out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "memarena", "demo", "--out", str(out), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


def _answered(folder: Path) -> int:
    if not log_path(folder).exists():
        return 0
    try:
        return sum(len(cell.settled) for cell in read_progress(folder).cells.values())
    except Exception:  # noqa: BLE001 (the log is only just being begun)
        return 0


def _run_id(folder: Path) -> str:
    return report_run(folder).scores.run_id


def _wait_for(reached: object, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + 120
    while not reached():  # type: ignore[operator]
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline_s
        time.sleep(0.3)
