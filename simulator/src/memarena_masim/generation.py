"""Implements ``masim generate``: makes one data set or several, and resumes those that are unfinished."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memarena_masim.config import (
    PA_SESSIONS_PER_AGENT_DAY,
    PackRef,
    WorldConfig,
    preset,
    sized,
)
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.model import Engine
from memarena_masim.engines.offline import OfflineEngine
from memarena_masim.errors import MasimError
from memarena_masim.output.generate import generate
from memarena_masim.output.parts import is_left
from memarena_masim.output.worlds import counts_of_complete, shortage, summary, world_folder
from memarena_masim.pack import PUBLIC, announced
from memarena_masim.packs.check import refuse_faults
from memarena_masim.packs.commands import resolved

SESSIONS_PER_PROCESS = 1000
"""Sessions that make a worker process worth its start, in which it reads all phrase banks."""


EXECUTORS = ("local", "ray")


@dataclass(frozen=True, slots=True)
class WorldFlags:
    """The settings of a world, from the flags; None: as in its preset."""

    seed: int
    preset: str
    agents: int | None
    days: int | None
    density: float | None
    banks: str | None
    wording: str | None = None
    pack: Path | None = None

    def config(self, world: int) -> WorldConfig:
        """Return the configuration of world number ``world``. MasimError names the flag that is wrong."""
        config = preset(self.preset, self.seed, world)
        sizes = {"agents": self.agents, "days": self.days, "density": self.density}
        pack = None if self.pack is None else _checked_pack(self.pack.absolute())
        return sized(config, **sizes, pack=pack, banks=self.banks, wording=self.wording)


@cache
def _checked_pack(folder: Path) -> PackRef:
    """Return the reference to a pack, which must have no fault; that of the public pack if ``folder`` is its folder."""
    pack = announced(resolved(folder))
    if pack.folder != PUBLIC:
        refuse_faults(pack)
    return PackRef.of(pack, "" if pack.folder == PUBLIC else str(folder))


@dataclass(frozen=True, slots=True)
class Where:
    """Where worlds are generated: here (``local``), or on a cluster (``ray``) whose head is at ``address``."""

    executor: str = "local"
    address: str | None = None


def generate_worlds(
    out: Path,
    flags: WorldFlags,
    connection: EndpointConfig | None,
    *,
    worlds: int,
    workers: int | None,
    quiet: bool,
    where: Where = Where(),
) -> None:
    """Make the worlds that are not complete yet, and print a line for each. MasimError for a user's fault."""
    for flag, number in (("worlds", worlds), ("workers", workers)):
        if number is not None and number < 1:
            raise MasimError(f"--{flag} {number}: 1 or more is expected")
    if where.executor not in EXECUTORS:
        raise MasimError(f"--executor {where.executor}: one of {', '.join(EXECUTORS)} is expected")
    if where.executor == "ray":
        _on_ray(out, flags, connection, worlds, workers, where.address)
        return
    if where.address is not None:
        raise MasimError("--address: goes with --executor ray")
    for world in range(worlds):
        config = flags.config(world)
        folder = world_folder(out, world, worlds)
        with _engine(connection, workers or usual_workers(config), quiet) as (writer, say), _writing(folder):
            skip = worlds > 1 and not is_left(folder)
            counts = counts_of_complete(config, writer.identity, folder) if skip else None
            if counts is None:
                counts = generate(config, folder, engine=writer, progress=say)
        _print_counts(folder, config, counts)


def _print_counts(folder: Path, config: WorldConfig, counts: dict[str, int]) -> None:
    sys.stdout.write(f"{folder}: {summary(counts)}\n")
    sys.stdout.flush()
    short = shortage(config, counts)
    if short:
        _say(f"{folder}: fewer questions than aimed at: {short}")


def _on_ray(
    out: Path,
    flags: WorldFlags,
    connection: EndpointConfig | None,
    worlds: int,
    workers: int | None,
    address: str | None,
) -> None:
    """Generate each world as a task of the cluster; complete worlds are not made again."""
    # Imported here, since only users of a cluster need it.
    from memarena_masim.on_ray import WorldJob, make_on_ray  # noqa: PLC0415

    if flags.pack is not None:
        raise MasimError("--pack: does not go with --executor ray, whose nodes have the public pack alone")
    if connection is not None or workers is not None:
        flag = "workers" if connection is None else "engine llm"
        raise MasimError(f"--{flag}: does not go with --executor ray, where a world is one task of one core")
    jobs = []
    for world in range(worlds):
        config, folder = flags.config(world), world_folder(out, world, worlds)
        counts = counts_of_complete(config, OfflineEngine(1).identity, folder)
        if counts is not None:
            _print_counts(folder, config, counts)
        elif folder.exists() and any(folder.iterdir()):
            raise MasimError(f"--out {folder}: not empty; the command without --executor finishes what it began")
        else:
            jobs.append(WorldJob(world, config, folder))
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for job in jobs:
            if job.folder.exists():
                job.folder.rmdir()
        if jobs:
            make_on_ray(jobs, address, lambda job, counts: _print_counts(job.folder, job.config, counts), _say)


def usual_workers(config: WorldConfig) -> int:
    """Return the default number of worker processes: all cores, or fewer if they would not have enough to do."""
    per_agent_day = PA_SESSIONS_PER_AGENT_DAY * config.density + config.talks_per_agent_day
    sessions = config.agents * config.days * per_agent_day
    return max(1, min(os.cpu_count() or 1, int(sessions / SESSIONS_PER_PROCESS)))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn an OSError inside the block into a MasimError that names ``--out``. Finished days are kept."""
    try:
        yield
    except OSError as error:
        raise MasimError(f"--out {error.filename or folder}: {error.strerror or error}") from error


@contextmanager
def _engine(
    connection: EndpointConfig | None, workers: int, quiet: bool
) -> Iterator[tuple[Engine, Callable[[str], None]]]:
    """Yield the engine, and a function that shows a line of progress."""
    if connection is None:
        yield OfflineEngine(workers), (lambda _: None) if quiet else _say
        return
    # Imported only if a model writes the text: the client of its endpoint.
    from memarena_masim.engines.llm import LlmEngine  # noqa: PLC0415
    from memarena_masim.engines.progress_display import EngineDisplay  # noqa: PLC0415

    with (
        EngineDisplay(quiet=quiet) as display,
        LlmEngine(connection, progress=display.status) as engine,
    ):
        yield engine, display.day


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
