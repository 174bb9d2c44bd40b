"""Tests the CPU load of other processes: from two readings of the kernel's counters, and never 0 if it is unknown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from memarena.log.measuring import CpuLoad
from memarena.meters import cpu_load
from memarena.meters.cpu_load import CpuLoadSpan, own_cpu_s

TICKS_PER_S = 100
SPAN_NS = 10_000_000_000
TWO_CPUS = "cpu0 1 1\ncpu1 1 1\nintr 5\n"


def stat(path: Path, busy_s: float, cpus: str = TWO_CPUS) -> None:
    path.write_text(f"cpu  {round(busy_s * TICKS_PER_S)} 0 0 900 900 0 0 0 0 0\n{cpus}")


def load(
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
    *,
    busy_s: float,
    own_s: float,
    span_ns: int = SPAN_NS,
    shared: str = "",
) -> CpuLoad:
    """Return the load of a span in which the machine was busy for ``busy_s``, of which the run used ``own_s``."""
    own, clock = iter((50.0, 50.0 + own_s)), iter((7, 7 + span_ns))
    monkeypatch.setattr(cpu_load, "own_cpu_s", lambda: next(own))
    monkeypatch.setattr(cpu_load, "time", SimpleNamespace(monotonic_ns=lambda: next(clock)))
    monkeypatch.setattr("os.sysconf", lambda _name: TICKS_PER_S)
    stat(path, 300.0)
    span = CpuLoadSpan(path, shared)
    stat(path, 300.0 + busy_s)
    return span.ended()


@pytest.mark.parametrize(
    ("busy_s", "own_s", "busy", "others"),
    [
        (5.0, 5.0, 25, 0),  # all of it is the run's
        (15.0, 5.0, 75, 50),  # one of two cores is used by others
        (20.0, 0.0, 100, 100),
        (5.0, 5.02, 25, 0),  # more than all: the counters' resolution
    ],
)
def test_busy_time_that_the_run_did_not_use_is_that_of_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, busy_s: float, own_s: float, busy: float, others: float
) -> None:
    shares = load(monkeypatch, tmp_path / "stat", busy_s=busy_s, own_s=own_s)
    assert shares.busy.value == pytest.approx(busy)
    assert shares.others.value == pytest.approx(others)
    assert shares.others.unit == "%"


def test_a_server_that_may_run_on_this_machine_makes_others_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shares = load(monkeypatch, tmp_path / "stat", busy_s=15, own_s=5, shared="a model runs at localhost:8000")
    assert shares.busy.value == pytest.approx(75)
    assert (shares.others.value, shares.others.reason) == (None, "a model runs at localhost:8000")


def test_a_missing_reading_gives_a_reason_and_no_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = CpuLoadSpan(tmp_path / "none").ended()
    unasked = CpuLoadSpan("no meter was asked for").ended()
    short = load(monkeypatch, tmp_path / "stat", busy_s=0.1, own_s=0.0, span_ns=900_000_000)
    for shares, reason in (
        (missing, "No such file"),
        (unasked, "no meter was asked for"),
        (short, "the cell took 0.9 s, less than 1 s"),
    ):
        assert (shares.busy.value, shares.others.value) == (None, None)
        assert reason in shares.others.reason


def test_time_of_a_child_counts_as_own_also_when_it_has_ended() -> None:
    cpu_before_s = own_cpu_s()
    work = "import time\nwhile time.process_time() < 0.4: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert own_cpu_s() - cpu_before_s > 0.39
