"""Measures the load of the machine's CPUs, in all and by other programs, from two readings of the kernel's counters.

Times measured while other programs use the CPUs are not those of the backend alone; the load shows that in a report.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from memarena.log.measuring import CpuLoad, MeterFigure
from memarena.meters.procfs import busy_s, cpu_count
from memarena.meters.readings import one_line

LEAST_S = 1.0
"""Least span in seconds for which a load is computed, since the counters have steps of 10 ms."""


@dataclass(frozen=True)
class _Reading:
    """Readings of one moment: seconds of CPU time since boot, of all programs and of the run's processes."""

    at_ns: int
    busy_s: float
    own_s: float


class CpuLoadSpan:
    """A span of time that begins with the creation of the object.

    ``stat`` is the kernel's file of CPU times (proc_stat(5)), or a text with the reason why it is not read. ``shared``
    is the reason why the load of others is unknown: a server of the run may be on this machine without being started
    by the run; empty if there is none.
    """

    def __init__(self, stat: Path | str, shared: str = "") -> None:
        self._stat = stat
        self._shared = shared
        self._begin = _reading(stat)

    def ended(self) -> CpuLoad:
        """Return the load from the beginning until now."""
        end = _reading(self._stat)
        if isinstance(self._begin, str) or isinstance(end, str) or isinstance(self._stat, str):
            reason = next(reading for reading in (self._begin, end, self._stat) if isinstance(reading, str))
            return CpuLoad(busy=MeterFigure.unavailable(reason), others=MeterFigure.unavailable(reason))
        span_s = (end.at_ns - self._begin.at_ns) / 1e9
        if span_s < LEAST_S:
            short = MeterFigure.void(f"the cell took {span_s:.1f} s, less than {LEAST_S:g} s")
            return CpuLoad(busy=short, others=short)
        whole_s = span_s * cpu_count(self._stat)
        busy = end.busy_s - self._begin.busy_s
        others = busy - (end.own_s - self._begin.own_s)
        return CpuLoad(
            busy=_percent(busy, whole_s),
            others=MeterFigure.unavailable(self._shared) if self._shared else _percent(others, whole_s),
        )


def _percent(part_s: float, whole_s: float) -> MeterFigure:
    # Both counters have steps of 10 ms, so that a difference of the two may be a little below 0.
    return MeterFigure.measured(100 * min(max(part_s / whole_s, 0.0), 1.0), "%")


def _reading(stat: Path | str) -> _Reading | str:
    if isinstance(stat, str):
        return stat
    try:
        return _Reading(time.monotonic_ns(), busy_s(stat), own_cpu_s())
    except OSError as error:
        return f"{stat}: {error.strerror}"
    except (ValueError, psutil.Error) as error:
        return one_line(error)


def own_cpu_s() -> float:
    """Return seconds of CPU time of this process and all that it started, those that have ended included.

    A child's time passes to its parent when the parent has waited for it (proc_pid_stat(5), cutime), so that the sum
    over the living holds the dead.
    """
    root = psutil.Process()
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:  # it ended meanwhile
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
