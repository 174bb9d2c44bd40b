"""Generates the demonstration's data set: a small world, by the simulator in a separate process."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

from memarena.execution.errors import RunError
from memarena.processes import GuardedProcess, python_module

SEED = 7
PRESET = "tiny"
"""A third of the density of the released set. Facts must be repeated for questions on conflicts and permissions and
for the options of a cloze, and are at this density."""
PEOPLE = 38
"""People of the world, enough to separate the memories' intervals: with 32, two touch in one world of five."""
DAYS = 3
TIMEOUT_S = 120.0
_POLL_S = 0.05


def is_whole(out: Path) -> bool:
    """Whether a world is complete; an incomplete one has a folder ``.days`` of its finished days."""
    return (out / "run_info.json").is_file() and not (out / ".days").exists()


def make_world(out: Path, seed: int = SEED) -> None:
    """Generate the world of ``seed`` in ``out``, or continue an incomplete one.

    Raises :class:`RunError` if the simulator is missing, fails, or takes longer than :data:`TIMEOUT_S`.
    """
    if importlib.util.find_spec("memarena_masim") is None:
        raise RunError("demo: the simulator (masim) is not installed next to this command; `make demo` sets it up")
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
