"""Tests resuming a killed generation of the LLM engine, refusing another engine or model, and ``masim generate``."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from memarena_dataset.validate import Profile, validate
from memarena_masim.cli import main
from memarena_masim.config import WorldConfig
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.llm import LlmEngine
from memarena_masim.errors import MasimError
from memarena_masim.output.generate import generate
from memarena_masim.output.parts import PARTS

from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer

from .scripted_llm import perfect, requests

CONFIG = WorldConfig(name="test", agents=5, days=3, density=0.14, question_share=2.0, seed=104)
FIRST_DAY = "Wednesday"
"""The weekday of 1 January 2025."""


def generate_from(url: str, out: Path) -> None:
    """Generate a world with the model at ``url``: the process that is killed."""
    with LlmEngine(EndpointConfig(url, "scripted", concurrency=3)) as engine:
        generate(CONFIG, out, engine=engine)


def only_the_first_day(body: Body) -> Script:
    """Return replies for the first day only; other requests have to wait."""
    return Script(perfect(body), delay_s=0.0 if FIRST_DAY in str(body["messages"]) else 60.0)


@pytest.fixture(scope="module")
def once_killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generation killed after its first day."""
    out = tmp_path_factory.mktemp("killed") / "w"
    with ModelServer(only_the_first_day) as server:
        child = multiprocessing.get_context("spawn").Process(target=generate_from, args=(server.base_url, out))
        child.start()
        deadline = time.monotonic() + 60
        while not (out / PARTS / "day_0000.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    assert (out / PARTS / "day_0000.jsonl").exists()
    assert not (out / PARTS / "day_0001.jsonl").exists()
    return out


@pytest.fixture
def killed(once_killed: Path, tmp_path: Path) -> Path:
    """A copy of ``once_killed`` for one test."""
    return Path(shutil.copytree(once_killed, tmp_path / "w"))


def test_a_killed_generation_resumes_at_the_last_complete_day(killed: Path) -> None:
    """The finished day is unchanged and not requested again; the report has the counts of both calls."""
    first_day = (killed / PARTS / "day_0000.jsonl").read_text()
    with ModelServer(perfect) as server:
        generate_from(server.base_url, killed)
        session_requests = requests(server, "session")
    assert session_requests
    # Behind the first sentence may be a look back.
    assert not any(FIRST_DAY in request.user.split(". ")[0] for request in session_requests)
    assert (killed / "corpus_sessions.jsonl").read_text().startswith(first_day)
    report = json.loads((killed / "pipeline_report.json").read_text())
    assert report["engine"]["sessions"]["planned"] == report["counts"]["sessions"] > len(session_requests)
    assert [str(finding.problem) for finding in validate(killed, Profile.FULL).errors] == []


@pytest.mark.parametrize("other", ["offline", "model", "temperature"])
def test_resuming_with_another_engine_or_model_is_refused(killed: Path, other: str) -> None:
    """So a data set has the words of one engine and model."""
    before = sorted(path.name for path in (killed / PARTS).iterdir())
    with pytest.raises(MasimError, match=r"another configuration \(engine (name|model|temperature): ") as failure:
        if other == "offline":
            generate(CONFIG, killed)
        else:
            began_with = EndpointConfig("http://127.0.0.1:9/v1", "scripted")
            change = {"model": "better"} if other == "model" else {"temperature": 0.1}
            config = dataclasses.replace(began_with, **change)
            with LlmEngine(config) as engine:
                generate(CONFIG, killed, engine=engine)
    assert "\n" not in str(failure.value)
    assert sorted(path.name for path in (killed / PARTS).iterdir()) == before


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command in this process; return exit code, standard output and standard error."""
    monkeypatch.setattr("sys.argv", ["masim", *arguments])
    code = 0
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    captured = capsys.readouterr()
    return code, captured.out, captured.err


LLM = ("generate", "--engine", "llm", "--agents", "4", "--days", "2", "--density", "0.12", "--seed", "5")


def test_the_command_makes_a_world_with_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key is read from the named variable and written nowhere; progress goes to standard error."""
    monkeypatch.setenv("SCRIPTED_KEY", "hush-hush")
    out = tmp_path / "w"
    with ModelServer(perfect) as server:
        flags = ("--endpoint", server.base_url, "--model", "m", "--api-key-env", "SCRIPTED_KEY", "--concurrency", "3")
        code, output, errors = run(monkeypatch, capsys, *LLM, *flags, "--out", str(out))
        assert server.most_in_flight <= 3
    assert code == 0, errors
    assert "questions" in output
    assert "day 2 of 2" in errors
    assert not any("hush-hush" in path.read_text() for path in out.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((*LLM,), "--endpoint: missing"),
        ((*LLM, "--endpoint", "ftp://x"), "--endpoint ftp://x"),
        ((*LLM, "--endpoint", "http://127.0.0.1:9/v1"), "--model: missing"),
        ((*LLM, "--endpoint", "http://h/v1", "--model", "m", "--concurrency", "0"), "--concurrency 0"),
        ((*LLM, "--endpoint", "http://h/v1", "--model", "m", "--temperature", "9"), "--temperature 9"),
        ((*LLM, "--endpoint", "http://h/v1", "--model", "m", "--timeout-s", "0"), "--timeout-s 0"),
        ((*LLM, "--endpoint", "http://h/v1", "--model", "m", "--api-key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY"),
        (("generate", "--model", "m"), "--model: only --engine llm"),
        (("generate", "--engine", "magic"), "--engine magic"),
        (("generate", "--worlds", "0"), "--worlds 0"),
    ],
)
def test_bad_flags_are_one_line(
    flags: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, the flag named, nothing written."""
    code, _, errors = run(monkeypatch, capsys, *flags, "--out", str(tmp_path / "w"))
    assert code == 2
    assert message in errors
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert not (tmp_path / "w").exists()
