"""From the flags of ``memarena latency`` and a configuration file to what its runs do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memarena.cli.run_config import settled
from memarena.cli.run_flags import RunFlags
from memarena.configs import read_file
from memarena.execution.planning.config import RunConfig
from memarena.latency.errors import LatencyError
from memarena.latency.study import IDLE_S, PHASE1, SET_BY_THE_STUDY, WARM_UP
from memarena.log.records import NamedConfiguration


def study_settings(flags: RunFlags, file: Path | None) -> tuple[RunConfig, NamedConfiguration | None]:
    """What phase 1 of a study does: flags win over the file, and both over the study's own defaults.

    Raises :class:`LatencyError` for a file that sets what the study decides by itself, RunError naming file and field,
    or the flag, for any value that cannot be.
    """
    in_file = {} if file is None else read_file(file).run
    for name in SET_BY_THE_STUDY:
        if name in in_file:
            raise LatencyError(f"--config {file}: {name}: set by the study itself ({SET_BY_THE_STUDY[name]})")
    found, configuration = settled(
        replace(
            flags,
            name=None if file is None else str(file),
            backend=",".join(PHASE1) if flags.backend is None else flags.backend,
            idle_s=IDLE_S if flags.idle_s is None and "idle_s" not in in_file else flags.idle_s,
            warm_up=WARM_UP if flags.warm_up is None and "warm_up" not in in_file else flags.warm_up,
        )
    )
    if found is None:
        raise LatencyError("memarena latency run: nothing was asked for")
    return found, configuration


def words(text: str) -> list[str]:
    """The entries of a list that is separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def day_numbers(text: str) -> list[int]:
    """``--days``. Raises :class:`LatencyError` for what is no list of numbers of at least 1."""
    try:
        found = [int(word) for word in words(text)]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise LatencyError(f"--days {text}: expected numbers from 1 on, separated by commas, such as 1,5,10,15")
    return found
