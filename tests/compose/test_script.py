"""Tests the script of the harness's container, without Docker: it stops in order, and the same command resumes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.stack import ROOT
from tests.e2e.harnessing import EXAMPLE, answers, count, times_answered

SCRIPT = ROOT / "compose" / "run-tiny-world.sh"
QUESTIONS = 35


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[str]:
    address = tmp_path / "address"
    command = [sys.executable, "-m", "memarena_backend_bm25", "--listen", "127.0.0.1:0", "--address-file", str(address)]
    with (tmp_path / "backend.log").open("wb") as log:
        process = subprocess.Popen([*command, "--data-dir", str(tmp_path / "data")], stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not address.exists() or not address.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield address.read_text().strip()
    finally:
        process.kill()
        process.wait()


def variables(out: Path, **more: str) -> dict[str, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MEMARENA_CONTAINER_OUT": str(out),
        "MEMARENA_CONTAINER_DATASET": str(EXAMPLE),
        "MEMARENA_DATASET": "given",
        "MEMARENA_READER": "extractive",
        "MEMARENA_GATEWAY_NAME": "127.0.0.1",
        "MEMARENA_GATEWAY_PORT": str(port),
        "MEMARENA_LIMIT": "",
        "MEMARENA_EDGE": "0",
        **more,
    }


def test_a_run_that_is_told_to_stop_ends_in_order_and_the_same_command_goes_on_with_it(
    tmp_path: Path, backend: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    environment = variables(out, MEMARENA_BACKEND_BM25=f"bm25={backend}")
    process = subprocess.Popen(["sh", str(SCRIPT)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 120
    while not any(count(run, "asked") >= 3 for run in out.glob("run-*")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0].decode()
    (run,) = out.glob("run-*")
    assert (process.returncode, f"the same command goes on with {run}" in output) == (130, True), output
    assert (out / "exit-code").read_text() == "130\n"
    assert count(run, "run_ended") == 1, "the log says how it ended"
    assert 3 <= len(times_answered(run)) < QUESTIONS
    again = subprocess.run(
        ["sh", str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"going on with {run}" in again.stdout
    assert list(out.glob("run-*")) == [run]
    assert len(answers(run)) == QUESTIONS, "an empty limit means all"
    assert set(times_answered(run).values()) == {1}
    assert (run / "report.html").exists()
    assert (out / "exit-code").read_text() == "0\n"
    assert list((out / ".begun").iterdir()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"MEMARENA_CELL_TOKEN": "short"}, "MEMARENA_CELL_TOKEN: expected at least 16 characters"),
        ({"MEMARENA_BACKEND_BM25": ""}, "no backend"),
    ],
)
def test_what_cannot_work_is_said_before_a_world_is_made(tmp_path: Path, more: dict[str, str], message: str) -> None:
    environment = variables(tmp_path, **{"MEMARENA_BACKEND_BM25": "bm25=127.0.0.1:1", **more})
    result = subprocess.run(
        ["sh", str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stderr.startswith(f"error: {message}")) == (2, True), result.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "exit-code"]
    assert (tmp_path / "exit-code").read_text() == "2\n"
