"""A second process that settles half of the questions: the same scores, its errors heard, gone when it is left."""

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
from memarena.forked_worker import ForkedWorkerError, forked
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


def test_it_outlives_no_parent_that_is_killed() -> None:
    """A result that fits into no pipe buffer waits for a reader: the second process must not be its own."""
    killed = (
        "import os, signal\nfrom memarena.forked_worker import forked\n"
        "with forked(lambda: bytes(1 << 22)):\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", killed], capture_output=True, timeout=60, check=False)
    # The second process holds standard error open: run() returns once both have ended.
    assert done.returncode == -signal.SIGKILL
    assert b"BrokenPipeError" in done.stderr
