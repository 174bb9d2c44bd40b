"""Measures memory and disk of a program: of its processes or its container's control group, and of its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from memarena.log.measuring import MeterFigure
from memarena.meters.cgroups import cgroup_source
from memarena.meters.readings import Reading, one_line
from memarena.processes import CONFINEMENT

_BLOCK_BYTES = 512
"""Unit of st_blocks (stat(2))."""


@dataclass(frozen=True)
class Footprint:
    """Bytes of memory now, peak of memory so far, bytes on disk; each a value or the reason why there is none."""

    memory: MeterFigure
    memory_peak: MeterFigure
    disk: MeterFigure


def footprint_of_processes(root_pid: int, data_dir: Path | None, *, itself: bool = False) -> Footprint:
    """Return the footprint of all descendants of ``root_pid``, and with ``itself`` of that process too.

    Without ``itself`` the root is a guard (:mod:`memarena.processes`), a small process of ours that ends the program
    with the harness; it does not count, nor does the first process of a confinement. Memory
    is the proportional set size, so that shared pages count once; the peak is the sum of the processes' peaks of their
    resident sets (VmHWM), an upper bound if they peak at different times.
    """
    try:
        root = psutil.Process(root_pid)
        processes = [*([root] if itself else []), *root.children(recursive=True)]
        running = [process for process in processes if process.status() != psutil.STATUS_ZOMBIE]
        pids = [process.pid for process in running if CONFINEMENT not in process.cmdline()]
    except psutil.Error as error:
        gone = MeterFigure.unavailable(f"process {root_pid}: {error}")
        return Footprint(gone, gone, disk_figure(data_dir))
    if not pids:
        gone = MeterFigure.unavailable(f"no process runs below {root_pid}")
        return Footprint(gone, gone, disk_figure(data_dir))
    return Footprint(_summed(pids, _pss), _summed(pids, _peak), disk_figure(data_dir))


def footprint_of_cgroup(folder: Path, data_dir: Path | None) -> Footprint:
    """Return the footprint of a container by its control group's folder (``cgroups.memory_cgroup_of`` returns it)."""
    source = cgroup_source("backend", folder)
    figures = {entry.channel.name: MeterFigure.unavailable(entry.reason) for entry in source.unavailable}
    for entry in source.read():
        name = entry.channel.name
        if isinstance(entry, Reading):
            figures[name] = MeterFigure.measured(entry.value, "B")
        else:
            figures[name] = MeterFigure.unavailable(entry.reason)
    return Footprint(figures["backend.memory"], figures["backend.memory_peak"], disk_figure(data_dir))


def disk_bytes(folder: Path) -> int:
    """Return the bytes on disk of the files below a folder, each inode once, without files that vanish meanwhile."""
    total, inodes = 0, set()
    for path, _, names in os.walk(folder):
        for name in (".", *names):
            try:
                stat = os.lstat(os.path.join(path, name))  # noqa: PTH118  (os.walk gives strings)
            except FileNotFoundError:
                continue
            if (stat.st_dev, stat.st_ino) not in inodes:
                inodes.add((stat.st_dev, stat.st_ino))
                total += stat.st_blocks * _BLOCK_BYTES
    return total


def disk_figure(folder: Path | None) -> MeterFigure:
    """Return :func:`disk_bytes` of a data folder, or why it is unknown; ``folder`` None: the folder is not known."""
    if folder is None:
        return MeterFigure.unavailable("the backend keeps its data where the harness has no access")
    try:
        return MeterFigure.measured(disk_bytes(folder), "B")
    except OSError as error:
        return MeterFigure.unavailable(f"{error.filename}: {error.strerror}")


def _summed(pids: Iterable[int], read: Callable[[int], int]) -> MeterFigure:
    """Return the sum over processes. Processes that end meanwhile do not count; an unreadable one voids the sum."""
    total, counted = 0, 0
    for pid in pids:
        try:
            total += read(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except (OSError, ValueError) as error:
            return MeterFigure.unavailable(f"process {pid}: {one_line(error)}")
        counted += 1
    return (
        MeterFigure.measured(total, "B")
        if counted
        else MeterFigure.unavailable("all its processes ended while they were being measured")
    )


def _pss(pid: int) -> int:
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def _peak(pid: int) -> int:
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmHWM")


def _kilobytes(path: Path, name: str) -> int:
    """Return an entry of proc_pid_status(5) or proc_pid_smaps(5) in bytes. Raises ValueError if it is missing."""
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        key, _, amount = line.partition(":")
        if key == name and amount.endswith(" kB"):
            return int(amount[:-3]) * 1024
    raise ValueError(f"{path}: no {name}")
