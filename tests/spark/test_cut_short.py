"""Tests that certifying which is interrupted at any point leaves no folder that verifies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.verify import Trust, verify


def partial_files(folder: Path) -> int:
    """Return the number of files in unfinished bundles below a folder."""
    return sum(p.is_file() for partial in folder.glob(".bundle.partial-*") for p in partial.rglob("*"))


def test_certifying_that_is_killed_leaves_nothing_that_verifies(finished: Path, tmp_path: Path) -> None:
    """The process is suspended after 2, 8, 12 and 15 files, and killed at 15, when all files of a bundle are there."""
    slow = (
        "import sys, time\n"
        "from memarena_spark import files\n"
        "from memarena_spark.bundle import certify as making\n"
        "whole = files.write_whole\n"
        "def write(path, content):\n"
        "    whole(path, content)\n"
        "    time.sleep(0.15)\n"
        "making.write_whole = write\n"
        "making.sync_folder = lambda folder: time.sleep(0.5)\n"
        "from pathlib import Path\n"
        "making.certify(Path(sys.argv[1]), Path(sys.argv[2]), None)\n"
    )
    making = tmp_path / "making"
    making.mkdir()
    with subprocess.Popen([sys.executable, "-c", slow, str(finished), str(making / "bundle")]) as process:
        for files in (2, 8, 12, 15):
            deadline = time.monotonic() + 60
            while partial_files(making) < files:
                assert process.poll() is None, "it ended before it could be stopped"
                assert time.monotonic() < deadline
                time.sleep(0.005)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            copy = Path(shutil.copytree(making, tmp_path / f"left-{files}"))
            process.send_signal(signal.SIGKILL if files == 15 else signal.SIGCONT)
            assert_nothing_verifies(copy, tmp_path / f"renamed-{files}")
        process.wait()
    assert_nothing_verifies(making, tmp_path / "renamed")


def assert_nothing_verifies(parent: Path, renamed: Path) -> None:
    """Check that no folder in ``parent`` verifies, neither under its own name nor as a bundle's name."""
    folders = [path for path in parent.iterdir() if path.is_dir()]
    assert folders
    assert not (parent / "bundle").exists()
    for folder in folders:
        assert not verify(folder, Trust(unsigned=True)).passed
        assert not verify(Path(shutil.copytree(folder, renamed)), Trust(unsigned=True)).passed


def test_certifying_that_is_killed_between_renaming_and_its_last_step_leaves_nothing_that_verifies(
    finished: Path, tmp_path: Path
) -> None:
    certify(finished, tmp_path / "bundle", None)
    assert verify(tmp_path / "bundle", Trust(unsigned=True)).passed
    (tmp_path / "bundle" / layout.UNFINISHED).write_bytes(b"")
    (fault,) = verify(tmp_path / "bundle", Trust(unsigned=True)).faults
    assert (fault.file, fault.message) == (layout.UNFINISHED, "the making of this bundle was cut short")
