"""Whatever ends certifying half-way leaves nothing that verifies."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.verify import Trust, verify


def partial_files(folder: Path) -> int:
    return sum(p.is_file() for made in folder.glob(".bundle.partial-*") for p in made.rglob("*"))


@pytest.mark.parametrize("files", [2, 8, 12, 15])
def test_certifying_that_is_killed_leaves_nothing_that_verifies(files: int, finished: Path, tmp_path: Path) -> None:
    """Stopped (SIGSTOP, then SIGKILL) as soon as so many files are there; the last has all of a bundle's."""
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
    out = tmp_path / "bundle"
    with subprocess.Popen([sys.executable, "-c", slow, str(finished), str(out)]) as process:
        deadline = time.monotonic() + 60
        while partial_files(tmp_path) < files:
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert left
    assert not out.exists()
    for folder in left:
        assert not verify(folder, Trust(unsigned=True)).passed
        # Given a bundle's name it is none either.
        assert not verify(Path(shutil.copytree(folder, tmp_path / "renamed")), Trust(unsigned=True)).passed


def test_certifying_that_is_killed_between_renaming_and_its_last_step_leaves_nothing_that_verifies(
    finished: Path, tmp_path: Path
) -> None:
    certify(finished, tmp_path / "bundle", None)
    assert verify(tmp_path / "bundle", Trust(unsigned=True)).passed
    (tmp_path / "bundle" / layout.UNFINISHED).write_bytes(b"")
    (fault,) = verify(tmp_path / "bundle", Trust(unsigned=True)).faults
    assert (fault.file, fault.message) == (layout.UNFINISHED, "the making of this bundle was cut short")
