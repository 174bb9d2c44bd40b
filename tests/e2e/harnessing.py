"""Runs the command ``memarena`` for tests, in a process or in this one, and reads the logs that it wrote."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import psutil
import pytest
from memarena.cli.main import main
from memarena.log.records import NamespaceOpened, Problem, QuestionAsked
from memarena.log.store import LogError, LogReader, read_records

from tests.support.psutil_processes import has_ended

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "data" / "example"
FAULTY = ROOT / "tests" / "execution" / "faulty_backend.py"

Key = tuple[str, str]


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of ``memarena`` with these arguments."""
    return [sys.executable, "-m", "memarena", *map(str, arguments)]


def memarena(*arguments: str | Path, timeout_s: float = 240.0) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process and wait for its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False, cwd=ROOT)


def overridden(usual: Sequence[str | Path], more: Sequence[str | Path]) -> list[str | Path]:
    """Return ``usual`` without the options (and their values) that occur in ``more``, followed by ``more``."""
    arguments = list(usual)
    for name in {word for word in more if str(word).startswith("--")} & set(arguments):
        index = arguments.index(name)
        del arguments[index : index + 2]
    return [*arguments, *more]


def here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which is quicker than to start another."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["memarena", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return subprocess.CompletedProcess(arguments, ended.value.code, out.getvalue(), err.getvalue())


def faulty(folder: Path, fault: str) -> Path:
    """Write a manifest of the faulty backend (tests/execution/faulty_backend.py) with this fault; return its path."""
    path = folder / "backend.toml"
    path.write_text(
        'schema = 1\n[[backend]]\nname = "faulty"\nkind = "competitor"\n'
        f'command = ["{{python}}", "{FAULTY}", "{fault}", "--listen", "127.0.0.1:0", '
        '"--address-file", "{address_file}", "--data-dir", "{data_dir}"]\n'
    )
    return path


def asked(run: Path) -> list[QuestionAsked]:
    """Return every attempt at a question, in the order of the log."""
    return [r for r in read_records(run, "asked") if isinstance(r, QuestionAsked)]


def answers(run: Path) -> dict[Key, str]:
    """Return the answer of each cell's questions, from the last attempt."""
    return {
        (r.cell_id, r.instance_id): r.answer.answer if r.answer is not None else f"({r.status}: {r.cause})"
        for r in asked(run)
    }


def times_answered(run: Path) -> Counter[Key]:
    """Return how often each question of each cell was answered or failed for good."""
    return Counter((r.cell_id, r.instance_id) for r in asked(run) if r.status != "infra_failed")


def count(run: Path, *kinds: str) -> int:
    """Return the number of records of these kinds in the log; 0 if there is no log yet.

    Records are not parsed, since callers poll this.
    """
    try:
        with LogReader(run) as log:
            return sum(1 for _ in log.rows(*kinds))
    except LogError:
        return 0


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start the command without waiting; it handles SIGINT even if a shell runs these tests in the background."""
    old_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
        )
    finally:
        signal.signal(signal.SIGINT, old_handler)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str], timeout_s: float = 120.0) -> None:
    """Wait for a condition; fail if the process ends or ``timeout_s`` passes before."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if process.poll() is not None:
            output = process.stdout.read() if process.stdout is not None else ""
            raise AssertionError(f"the process ended with {process.returncode} before the condition held:\n{output}")
        if time.monotonic() > deadline:
            process.kill()
            raise AssertionError("the condition did not hold in time")
        time.sleep(0.03)


def kill(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> list[psutil.Process]:
    """Send a signal, wait for the end, and return the descendants that the process had."""
    family = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, number)
    process.wait(60)
    if process.stdout is not None:
        process.stdout.close()
    return family


def survivors(family: Sequence[psutil.Process], timeout_s: float = 20.0) -> list[psutil.Process]:
    """Return the processes that are still running after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        running = [process for process in family if not has_ended(process)]
        if not running:
            return []
        time.sleep(0.05)
    return running


def problems(run: Path) -> list[str]:
    """Return the messages of the log's problems, in order."""
    return [r.message for r in read_records(run, "problem") if isinstance(r, Problem)]


def namespaces(run: Path) -> list[tuple[str, int]]:
    """Return (ego, attempt number) of every namespace that was opened."""
    return [(r.ego, r.attempt) for r in read_records(run, "namespace") if isinstance(r, NamespaceOpened)]
