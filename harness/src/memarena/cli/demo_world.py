"""The demonstration's data set: a small world, made on the spot by the simulator as a program of its own."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

from memarena.execution.errors import RunError
from memarena.processes import GuardedProcess, python_module

SEED = 7
PRESET = "tiny"
"""A third of the density of the released set: enough that something is said twice, which questions on conflicts and
permissions and the options of a cloze need."""
PEOPLE = 38
"""So many that the intervals over people tell the memories apart: with 32, two touch in one world of five."""
DAYS = 3
TIMEOUT_S = 120.0
_POLL_S = 0.05


def is_whole(out: Path) -> bool:
    """Whether a world was made to its end: what is half made has its finished days beside it."""
    return (out / "run_info.json").is_file() and not (out / ".days").exists()


def make_world(out: Path, seed: int = SEED) -> None:
    """Make the world of ``seed`` in ``out``, or go on with it.

    Raises :class:`RunError`, in one line, if the simulator cannot.
    """
    if importlib.util.find_spec("memarena_masim") is None:
        raise RunError("demo: the simulator (masim) is not installed beside this command; `make demo` sets it up")
    log = out.with_name(f"{out.name}.log")
    command = python_module(
        "memarena_masim",
        "generate",
        "--preset",
        PRESET,
        "--agents",
        str(PEOPLE),
        "--days",
        str(DAYS),
        "--seed",
        str(seed),
        "--out",
        str(out),
    )
    with GuardedProcess.start(command, log_path=log) as process:
        deadline_s = time.monotonic() + TIMEOUT_S
        while (code := process.poll()) is None and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        if code is None:
            raise RunError(f"demo: masim generate took more than {TIMEOUT_S:.0f} s; its output is in {log}")
        if code != 0:
            raise RunError(f"demo: masim generate failed: {process.log_tail() or f'exit code {code}'}")
    log.unlink()
