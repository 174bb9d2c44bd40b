"""Tests worker processes: same results as without them, errors are reported, no process stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import psutil
import pytest
from memarena import evaluation
from memarena.forked_worker import ForkedWorkerError, can_fork, forked, forked_each
from memarena.scoring.errors import ScoringError

from ..support import golden_run


def test_scores_and_their_order_are_those_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run")
    alone = evaluation.evaluate(run_dir, resamples=0)
    monkeypatch.setattr(evaluation, "FORK_FROM", 0)
    monkeypatch.setattr(evaluation, "can_fork", lambda: True)
    begun = Mock(side_effect=forked)
    monkeypatch.setattr(evaluation, "forked", begun)
    assert evaluation.evaluate(run_dir, resamples=0) == alone
    assert begun.call_count == 2, "for the questions, and again for the rows"


def test_what_it_raises_is_raised_here() -> None:
    def fail() -> NoReturn:
        raise ScoringError("log: question q7 says nothing")

    with forked(fail) as result, pytest.raises(ScoringError, match="question q7 says nothing"):
        result()


def test_its_death_is_told_and_is_no_result() -> None:
    with (
        forked(lambda: os.kill(os.getpid(), signal.SIGKILL)) as result,
        pytest.raises(ForkedWorkerError, match="ended with exit code -9 before its part was done"),
    ):
        result()


def test_it_ends_with_the_block_that_began_it() -> None:
    before = set(psutil.Process().children())

    def leave() -> NoReturn:
        with forked(lambda: time.sleep(600)):
            assert set(psutil.Process().children()) - before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert not set(psutil.Process().children()) - before


def test_workers_take_turns_results_come_in_order_and_none_is_left() -> None:
    before = set(psutil.Process().children())

    def work(number: int) -> tuple[int, int, bool]:
        if number == 0:
            time.sleep(0.3)  # the other process takes the rest meanwhile
        if number == 8:
            raise ScoringError("log 8: says nothing")
        return number, os.getpid(), can_fork()

    with forked_each(work, 8) as results:
        numbers, pids, forks = zip(*results, strict=True)
    assert numbers == tuple(range(8))
    assert len(set(pids)) == 2 and os.getpid() not in pids
    assert not any(forks), "a worker forks no other"
    with forked_each(work, 9) as results, pytest.raises(ScoringError, match="log 8: says nothing"):
        list(results)
    with (
        forked_each(lambda number: os.kill(os.getpid(), signal.SIGKILL), 3) as deaths,
        pytest.raises(ForkedWorkerError, match="ended with exit code -9 before its part was done"),
    ):
        list(deaths)
    with pytest.raises(KeyboardInterrupt), forked_each(lambda number: time.sleep(600), 3):
        assert len(set(psutil.Process().children()) - before) == 2
        raise KeyboardInterrupt
    assert not set(psutil.Process().children()) - before


@pytest.mark.parametrize("begin", ["forked(lambda: bytes(1 << 22))", "forked_each(lambda n: time.sleep(1), 9)"])
def test_it_outlives_no_parent_that_is_killed(begin: str) -> None:
    """What waits for the parent, to be read from or to be sent a number, does not wait for itself."""
    killed = (
        "import os, signal, time\nfrom memarena.forked_worker import forked, forked_each\n"
        f"with {begin} as results:\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    result = subprocess.run([sys.executable, "-c", killed], capture_output=True, timeout=60, check=False)
    # Worker processes hold standard error open: run() returns once all have ended.
    assert result.returncode == -signal.SIGKILL
    assert b"BrokenPipeError" in result.stderr
