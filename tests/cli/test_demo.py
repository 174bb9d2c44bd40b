"""Tests ``memarena demo``: its screens, its progress, and that it resumes after an interruption."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memarena.cli import demo
from memarena.cli.demo import QUICK, SLOW, TIMED, Part, _parts, _run, lacking
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
from memarena.report.brief_demo import first_screen, second_screen
from memarena.report.layout import Document
from memarena.report.render.terminal import count_lines, print_document
from memarena.report.report_input import ReportInput

from ..support import grid_run
from ..support.logs import write_log

ROOT = Path(__file__).parents[2]


def test_the_first_screen_has_the_table_of_all_questions_and_the_second_the_slow_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = report_run(write_log(tmp_path / "run", grid_run.records(12, prompt_words=4)))
    rows = {row.label: row for row in run.scores.rows}

    def only(*labels: str) -> ReportInput:
        chosen = run.scores.model_copy(update={"rows": tuple(rows[label] for label in labels)})
        return type(run)(chosen, run.provenance, run.costs, run.questions)

    def printed(document: Document) -> str:
        assert count_lines(document, 100) <= 33  # one line is a note on CPU load, absent on an idle machine
        print_document(document, width=100)
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 100
        return text

    everything = only(*(f"{name}@small-0.6b" for name in QUICK))
    person = only(*(f"{name}@small-0.6b" for name in (*QUICK, SLOW)))
    page = Path("runs/demo/report.html")
    text = printed(first_screen(everything, left_out={}))
    assert [sum(line.startswith(name) for line in text.splitlines()) for name in (*QUICK, SLOW)] == [1, 1, 1, 0]
    assert "\n  judge     value (" in text
    assert "Right answers" in text.partition("What this says")[2]
    text = printed(second_screen(person, only("bm25@large-8b"), page=page, folder=page.parent))
    assert [sum(line.startswith(name) for line in text.splitlines()) for name in (*QUICK, SLOW)] == [1, 1, 1, 1]
    latency = rows["bm25@large-8b"].latency
    assert latency is not None
    times = " ".join(text.partition("Times of a language model")[2].split())
    assert f"first token after {latency.ttft.p50:.0f} ms" in times
    assert "right" not in times, "so small a model says nothing about a memory"
    assert str(page) in text


def test_missing_packages_are_omitted_from_the_screens_with_an_install_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = report_run(write_log(tmp_path / "run", grid_run.records(12, prompt_words=4)))
    install_hints = {"memsearch": "pip install one", "LLM": "pip install other"}
    print_document(first_screen(run, left_out=install_hints, world_is_new=False), width=100)
    page = Path("runs/demo/report.html")
    print_document(second_screen(None, None, page=page, folder=page.parent), width=100)
    text = capsys.readouterr().out
    assert "left out  memsearch, not installed: pip install one\n" in text
    assert "left out  LLM, not installed: pip install other\n" in text
    assert "made just now" not in text
    assert "One person" not in text and "language model on this CPU" not in text


def test_the_demonstration_runs_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = DemoQuestions(("a", "b"), ("a",), ("a",), 1)

    def parts() -> dict[str, tuple[str, ...]]:
        demo_parts = _parts(tmp_path, questions, lacking(SLOW))
        return {
            part.name: tuple(getattr(each, "name", str(each)) for each in part.config.backends) for part in demo_parts
        }

    assert parts() == {"all": QUICK, "person": (*QUICK, SLOW), "llm": (TIMED,)}
    without = {name: backend for name, backend in backends_by_name().items() if name != SLOW}
    monkeypatch.setattr(demo, "backends_by_name", lambda: without)
    assert lacking(SLOW).slow == "pip install 'memarena[memsearch]'"
    assert parts() == {"all": QUICK, "llm": (TIMED,)}

    def no_weights() -> Weights:
        raise ReaderError("no weights")

    monkeypatch.setattr(demo, "find_weights", no_weights)
    assert parts() == {"all": QUICK}


def test_without_a_terminal_progress_is_a_few_distinct_lines(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_finished_part_is_not_run_again(tmp_path: Path) -> None:
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
    modified_before = log_path(tmp_path / "run").stat().st_mtime_ns
    assert _run(part, tmp_path / "run", DemoDisplay()).reason == "completed"
    assert log_path(tmp_path / "run").stat().st_mtime_ns == modified_before


def test_an_interrupted_demonstration_can_be_resumed(tmp_path: Path) -> None:
    """It is interrupted during the first run's questions; with --resume the same run continues."""
    out = tmp_path / "demo"
    first = _start(out)
    _wait_for(lambda: _answered(out / "all") > 5, first)
    first.terminate()
    _, stderr = first.communicate(timeout=60)
    assert first.returncode == 130
    assert stderr.splitlines()[-1] == f"interrupted; resume with: memarena demo --out {out} --resume"
    answer_count, log = _answered(out / "all"), _run_id(out / "all")
    second = _start(out, "--resume")
    _wait_for(lambda: _answered(out / "all") > answer_count, second)
    second.terminate()
    second.communicate(timeout=60)
    assert _run_id(out / "all") == log


def test_a_missing_demonstration_cannot_be_resumed(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "memarena", "demo", "--resume", "--out", str(tmp_path / "x")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (2, f"error: --resume: {tmp_path / 'x'} holds no demonstration\n")


def _start(out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "memarena", "demo", "--out", str(out), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


def _answered(folder: Path) -> int:
    if not log_path(folder).exists():
        return 0
    try:
        return sum(len(cell.finished) for cell in read_progress(folder).cells.values())
    except Exception:  # noqa: BLE001 (the log is being created)
        return 0


def _run_id(folder: Path) -> str:
    return report_run(folder).scores.run_id


def _wait_for(reached: object, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + 120
    while not reached():  # type: ignore[operator]
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline_s
        time.sleep(0.3)
