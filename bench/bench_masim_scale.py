"""Measures how masim scales to ten times the people, in CPU time and memory per agent and day."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

DAYS = 2
FEW, MANY = 50, 500
ROUNDS = 2
SEED = 11


@dataclass(frozen=True)
class Cost:
    """CPU seconds and the largest resident set (MiB) of one generation, in one process."""

    agents: int
    cpu_s: float
    peak_mib: float

    @property
    def cpu_ms_per_agent_day(self) -> float:
        """Return CPU milliseconds per person and day."""
        return 1000 * self.cpu_s / (self.agents * DAYS)

    @property
    def peak_kib_per_agent_day(self) -> float:
        """Return peak memory in KiB per person and day."""
        return 1024 * self.peak_mib / (self.agents * DAYS)


def generate(agents: int) -> Cost:
    """Measure one generation at density 1, in CPU time, since it does not depend on other load of the machine."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen(
            [sys.executable, "-m", "memarena_masim", "generate", "--agents", str(agents), "--days", str(DAYS),
             "--density", "1", "--seed", str(SEED), "--workers", "1", "--quiet", "--out", str(Path(folder) / "world")],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"masim generate --agents {agents} ended with {child.returncode}")
    return Cost(agents, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def tables() -> list[Table]:
    """Measure both sizes in turn; return a table of the cheapest round of each."""
    rounds = [(generate(FEW), generate(MANY)) for _ in range(ROUNDS)]
    few = min((pair[0] for pair in rounds), key=lambda cost: cost.cpu_s)
    many = min((pair[1] for pair in rounds), key=lambda cost: cost.cpu_s)
    table = Table(title=f"masim generate, {DAYS} days at density 1, one process, cheapest of {ROUNDS}")
    for heading in ("agents", "CPU s", "CPU ms per agent-day", "peak MiB", "peak KiB per agent-day"):
        table.add_column(heading, justify="right")
    for cost in (few, many):
        table.add_row(
            str(cost.agents), f"{cost.cpu_s:.1f}", f"{cost.cpu_ms_per_agent_day:.1f}", f"{cost.peak_mib:.0f}",
            f"{cost.peak_kib_per_agent_day:.0f}",
        )  # fmt: skip
    time_ratio = many.cpu_ms_per_agent_day / few.cpu_ms_per_agent_day
    memory_ratio = many.peak_kib_per_agent_day / few.peak_kib_per_agent_day
    verdict = "pass" if max(time_ratio, memory_ratio) <= 1.3 else "MISSED"
    table.add_section()
    table.add_row("ratio", f"{many.cpu_s / few.cpu_s:.1f}", f"{time_ratio:.2f}", "", f"{memory_ratio:.2f}")
    table.caption = f"bar: per agent-day at most 1.3 (ten times the people at most 13 times the time): {verdict}"
    return [table]
