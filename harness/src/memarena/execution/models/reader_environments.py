"""Environments of the readers' servers, apart from the harness's: made like those of backends, from pinned packages.

Each has a folder below ``memarena/readers/environments`` with what pip installs, every package pinned and hashed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from memarena_dataset.nearest_names import nearest

from memarena.execution.backends.environments import BackendEnvironment, EnvironmentTable, outside_the_harness
from memarena.execution.errors import RunError

SERVERS: Mapping[str, str] = {
    "sglang": "some 6 GB are downloaded",
    "vllm": "some 6 GB are downloaded",
    "llamacpp": "about half a minute",
}
"""Servers that can be installed, and what that takes."""
PYTHONS = ">=3.11,<3.13"
"""Versions of Python for which the servers' packages are pinned."""
GLIBC = "2.34"
"""Oldest glibc that the wheels of the servers with CUDA support (manylinux_2_34)."""
DRIVERS: Mapping[int, int] = {12: 525, 13: 580}
"""Oldest NVIDIA driver for each major version of CUDA (CUDA Toolkit release notes, minor-version compatibility)."""
_CUDA = re.compile(r"^nvidia-cuda-runtime(?:-cu\d+)?==(\d+)\.(\d+)", re.MULTILINE)
"""The pin of CUDA, such as ``nvidia-cuda-runtime-cu12==12.8.90``; a server without it needs no GPU."""


def reader_environment(server: str) -> BackendEnvironment:
    """Return the environment of a server. Raises :class:`RunError` for an unknown server."""
    if server not in SERVERS:
        raise RunError(
            f"{server}: no reader server of this name (known: {', '.join(SERVERS)}){nearest(server, SERVERS)}"
        )
    folder = Path(str(files("memarena.readers"))) / "environments" / server
    table = EnvironmentTable(
        python=PYTHONS, requirements="requirements.txt", constraints="constraints.txt", hashes="hashes.txt"
    )
    command = f"memarena readers install {server}"
    return BackendEnvironment(
        name=f"reader-{server}", folder=folder, table=table, command=command, takes=SERVERS[server]
    )


def lacks(server: str, driver: str | None, libc: str) -> list[str]:
    """Return what a machine lacks to run a server, one line each, whether or not the server is installed.

    Args:
        server: one of :data:`SERVERS`.
        driver: version of the NVIDIA driver, such as ``580.65.06``; None if no driver answers.
        libc: version of glibc, such as ``2.36``; "" if the machine has another C library.
    """
    pins = (reader_environment(server).folder / "constraints.txt").read_text(encoding="utf-8")
    runtime = _CUDA.search(pins)
    if runtime is None:
        return []
    reasons = []
    cuda, least_driver = f"CUDA {runtime[1]}.{runtime[2]}", DRIVERS.get(int(runtime[1]))
    if least_driver is None:
        reasons.append(f"the driver that {cuda} needs is not known, only those of CUDA {', '.join(map(str, DRIVERS))}")
    elif driver is None:
        reasons.append(f"no NVIDIA driver answers, {cuda} needs {least_driver} or newer")
    elif _version(driver) < (least_driver,):
        reasons.append(f"the NVIDIA driver is {driver}, {cuda} needs {least_driver} or newer")
    if _version(libc) < _version(GLIBC):
        reasons.append(f"glibc is {libc or 'not there'}, the wheels need {GLIBC} or newer")
    return reasons


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def server_program(server: str) -> tuple[str, ...]:
    """Return the command of the Python that starts a server: its environment's if it is complete, else the harness's
    own.
    """
    try:
        location = reader_environment(server).environment_path()
    except RunError:  # no Python fits, which installing the server reports
        return (sys.executable,)
    return tuple(outside_the_harness([str(location.python)])) if location.whole_stamp() else (sys.executable,)
