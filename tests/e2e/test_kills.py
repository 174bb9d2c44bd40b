"""Twenty kills at random moments, as ``make bench ARGS=kills`` makes two hundred: nothing lost or doubled."""

from __future__ import annotations

import subprocess
import sys

from .harnessing import ROOT


def test_kills_of_every_process_cost_no_question_and_leave_none_behind() -> None:
    sizes = ("--kills", "20", "--per-run", "10", "--workers", "2", "--backends", "bm25", "--limit", "10")
    # A request to end is given a minute here: how long it takes is measured by the benchmark.
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "run.py"), "kills", *sizes, "--seed", "7", "--end-within-s", "60"],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    assert "all of them" in done.stdout
