"""Reads a container's memory from its control group (cgroups(7); memory controller of versions 1 and 2).

The processes of a container belong to Docker and not to the run, so that they cannot be added up like those of a
backend's own process.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from memarena.meters.files import FileSource
from memarena.meters.readings import Channel, MeterError, Unavailable

_V2 = {"memory": "memory.current", "memory_peak": "memory.peak", "swap": "memory.swap.current"}
_V1 = {"memory": "memory.usage_in_bytes", "memory_peak": "memory.max_usage_in_bytes"}


def _number(path: Path) -> float:
    text = path.read_text(encoding="ascii").strip()
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{path}: expected a number of bytes, found {text[:40]!r}") from None


def _swap_v1(path: Path) -> float:
    for line in path.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name == "total_swap":
            return int(value)
    raise ValueError(f"{path}: no total_swap, the kernel does not account swap")


def cgroup_source(name: str, folder: Path) -> FileSource:
    """Open the control group ``folder``; channels are ``NAME.memory``, ``NAME.memory_peak``, ``NAME.swap`` in bytes."""
    if (folder / _V2["memory"]).is_file():
        files = {Channel(f"{name}.{quantity}", "B"): partial(_number, folder / file) for quantity, file in _V2.items()}
        return FileSource.opened(f"cgroup {name}", files)
    if (folder / _V1["memory"]).is_file():
        files = {Channel(f"{name}.{quantity}", "B"): partial(_number, folder / file) for quantity, file in _V1.items()}
        return FileSource.opened(
            f"cgroup {name}", {**files, Channel(f"{name}.swap", "B"): partial(_swap_v1, folder / "memory.stat")}
        )
    reason = f"{folder} has neither memory.current nor memory.usage_in_bytes"
    return FileSource.opened(
        f"cgroup {name}", {}, [Unavailable(Channel(f"{name}.{quantity}", "B"), reason) for quantity in _V2]
    )


def memory_cgroup_of(pid: int, proc: Path = Path("/proc"), mounted: Path = Path("/sys/fs/cgroup")) -> Path:
    """Return the folder of the control group that accounts a process's memory.

    Raises :class:`~memarena.meters.readings.MeterError` if the process is gone or has none.
    """
    path = proc / str(pid) / "cgroup"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise MeterError(f"{path}: {error.strerror}") from error
    # Lines are NUMBER:CONTROLLERS:PATH. A machine with both versions accounts memory by version 1, if it is named.
    unified = None
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            return mounted / "memory" / group.lstrip("/")
        if not controllers:
            unified = mounted / group.lstrip("/")
    if unified is None:
        raise MeterError(f"{path}: no control group accounts memory")
    return unified
