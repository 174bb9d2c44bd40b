"""Tests that child processes die with their owner, whatever they try and however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from memarena.processes import KEPT_LOG_BYTES, MOST_LOG_BYTES, GuardedProcess

SPAWNS_A_DETACHED_GRANDCHILD = """
import os, subprocess, sys, time, pathlib
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {grandchild.pid}")
time.sleep(600)
"""

OWNER = """
import sys, time, pathlib
from memarena.processes import GuardedProcess
p = GuardedProcess.start([sys.executable, "-c", sys.argv[1], sys.argv[2]], log_path=pathlib.Path(sys.argv[3]))
time.sleep(600)
"""


def wait_for(condition: object, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.05)
    pytest.fail("condition not met in time")


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def started_pids(path: Path) -> list[int]:
    wait_for(lambda: path.exists() and len(path.read_text().split()) == 2)
    return [int(pid) for pid in path.read_text().split()]


def test_nothing_survives_a_sigkill_of_the_owner(tmp_path: Path) -> None:
    """Neither the child nor a grandchild in a session of its own outlives an owner that is killed outright."""
    pid_file = tmp_path / "pids"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, SPAWNS_A_DETACHED_GRANDCHILD, str(pid_file), str(tmp_path / "log")]
    )
    pids = started_pids(pid_file)
    assert not any(gone(pid) for pid in pids)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    wait_for(lambda: all(gone(pid) for pid in pids))


def test_stop_ends_child_and_grandchild(tmp_path: Path) -> None:
    pid_file = tmp_path / "pids"
    process = GuardedProcess.start(
        [sys.executable, "-c", SPAWNS_A_DETACHED_GRANDCHILD, str(pid_file)], log_path=tmp_path / "log"
    )
    pids = started_pids(pid_file)
    assert process.poll() is None
    process.stop()
    assert process.poll() is not None
    assert all(gone(pid) for pid in pids)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = (
        "import signal, time, pathlib, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "pathlib.Path(sys.argv[1]).write_text('x'); time.sleep(600)"
    )
    process = GuardedProcess.start([sys.executable, "-c", code, str(ready)], log_path=tmp_path / "log")
    wait_for(ready.exists)
    process.stop(grace_s=0.5)
    assert process.poll() is not None


def test_killing_the_guard_kills_the_child(tmp_path: Path) -> None:
    pid_file = tmp_path / "pids"
    process = GuardedProcess.start(
        [sys.executable, "-c", SPAWNS_A_DETACHED_GRANDCHILD, str(pid_file)], log_path=tmp_path / "log"
    )
    child, grandchild = started_pids(pid_file)
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: gone(child))
    process.stop()
    psutil.Process(grandchild).kill()  # a guard that is shot cannot clean up behind its child; we can


def test_exit_code_and_output_are_kept(tmp_path: Path) -> None:
    process = GuardedProcess.start(
        [sys.executable, "-c", "import sys; print('bye'); sys.exit(3)"], log_path=tmp_path / "log"
    )
    wait_for(lambda: process.poll() is not None)
    assert process.poll() == 3
    assert process.log_tail() == "bye"
    process.stop()


def test_a_command_that_does_not_exist_says_so(tmp_path: Path) -> None:
    process = GuardedProcess.start([str(tmp_path / "nothing-here")], log_path=tmp_path / "log")
    wait_for(lambda: process.poll() is not None)
    assert process.poll() == 127
    assert "nothing-here" in process.log_tail()
    process.stop()


PRINTS_WITHOUT_END = """
import os, sys, time
for number in range(80):
    print(f"{number} " + "x" * (1 << 20), flush=True)
while os.fstat(1).st_size > 64 << 20:  # output during the cut may be lost
    time.sleep(0.05)
time.sleep(0.5)
print("the last line", flush=True)
time.sleep(600)
"""


def test_a_printout_without_end_keeps_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with GuardedProcess.start([sys.executable, "-c", PRINTS_WITHOUT_END], log_path=log) as process:
        wait_for(lambda: log.stat().st_size < MOST_LOG_BYTES and process.log_tail().endswith("the last line"), 60)
        assert b"bytes before this were removed" in log.read_bytes()
        assert log.stat().st_size >= KEPT_LOG_BYTES
    assert len(process.log_tail()) < 100_000
