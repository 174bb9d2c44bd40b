"""The command ``masim``: one line and exit code 2 for bad input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def masim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "masim", *arguments], capture_output=True, text=True, check=False)


def test_generates_a_tiny_world(tmp_path: Path) -> None:
    """The folder has the layout of a data set."""
    done = masim("generate", "--preset", "tiny", "--seed", "3", "--out", str(tmp_path / "w"), "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "w" / "corpus_sessions.jsonl").exists()


def test_unknown_preset_is_one_line(tmp_path: Path) -> None:
    """It names the flag and what is expected."""
    done = masim("generate", "--preset", "huge", "--out", str(tmp_path / "w"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: --preset huge")
    assert done.stderr.count("\n") == 1


def test_sizes_out_of_range_are_one_line(tmp_path: Path) -> None:
    """A world of one person is refused, without a stack trace."""
    done = masim("generate", "--agents", "1", "--out", str(tmp_path / "w"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: --agents")
    assert done.stderr.count("\n") == 1
