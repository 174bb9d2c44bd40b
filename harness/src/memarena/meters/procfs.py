"""Reads CPU time, memory and swap of the whole machine from /proc (proc_stat(5), proc_meminfo(5))."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from memarena.meters.files import FileSource
from memarena.meters.readings import Channel

CPU_BUSY = Channel("cpu_busy", "s")
MEMORY_USED = Channel("memory_used", "B")
MEMORY_AVAILABLE = Channel("memory_available", "B")
SWAP_USED = Channel("swap_used", "B")


def busy_s(path: Path) -> float:
    """Return busy seconds of CPU time since boot over all cores: not idle, not waiting for I/O, not stolen."""
    fields = path.read_text(encoding="ascii").split("\n", 1)[0].split()
    if len(fields) < 8 or fields[0] != "cpu":
        raise ValueError(f"{path}: expected a first line of cpu times")
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def cpu_count(path: Path) -> int:
    """Return the number of CPUs that are online: the lines ``cpu0``, … of ``path``. Raises ValueError for none."""
    lines = path.read_text(encoding="ascii").splitlines()
    if not (count := sum(line.startswith("cpu") and line[3:4].isdigit() for line in lines)):
        raise ValueError(f"{path}: expected a line of times of each cpu")
    return count


def _meminfo(path: Path, *names: str) -> list[int]:
    """Return entries of meminfo in bytes."""
    amounts = {}
    for line in path.read_text(encoding="ascii").splitlines():
        name, _, amount = line.partition(":")
        if amount.endswith(" kB"):
            amounts[name] = int(amount[:-3]) * 1024
    if missing := [name for name in names if name not in amounts]:
        raise ValueError(f"{path}: no {' and no '.join(missing)}")
    return [amounts[name] for name in names]


def procfs_source(root: Path) -> FileSource:
    """Open ``root``/stat and ``root``/meminfo. ``cpu_busy`` is a counter: its slope is the number of busy cores."""
    memory = root / "meminfo"

    def used(total: str, free: str) -> Callable[[], float]:
        def read() -> float:
            all_of_it, rest = _meminfo(memory, total, free)
            return all_of_it - rest

        return read

    return FileSource.opened(
        "procfs",
        {
            CPU_BUSY: lambda: busy_s(root / "stat"),
            MEMORY_USED: used("MemTotal", "MemAvailable"),
            MEMORY_AVAILABLE: lambda: _meminfo(memory, "MemAvailable")[0],
            SWAP_USED: used("SwapTotal", "SwapFree"),
        },
    )
