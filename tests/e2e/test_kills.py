"""Tests that 20 kills at random moments lose or double no question (``make bench ARGS=kills`` makes 200).

A run may be ended at any moment. A question that was lost or asked twice would change its scores.
"""

from __future__ import annotations

import subprocess
import sys

from .harnessing import ROOT


def test_kills_of_every_process_cost_no_question_and_leave_none_behind() -> None:
    sizes = ("--kills", "20", "--per-run", "10", "--workers", "2", "--backends", "bm25", "--limit", "10")
    # SIGTERM has a minute to take effect here; the benchmark measures how long it takes.
    result = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "run.py"), "kills", *sizes, "--seed", "7", "--end-within-s", "60"],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + result.stdout
    assert "all of them" in result.stdout
