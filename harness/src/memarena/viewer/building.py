"""Builds the caches of runs for the server: each in its own process, one at a time; pages show the steps meanwhile.

A cache (:mod:`memarena.viewer.cache_file`) holds a scored log, which a page could not compute while a user waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memarena.viewer.cache_build import STEPS
from memarena.viewer.cache_file import BestRow, best_row, cache_path, fit, key_of, touch
from memarena.viewer.found_runs import FoundRun, Position, position

AGAIN_AFTER = 5.0
"""Pause between two builds of a log that is being written, in multiples of the time that the last build took."""
LEAST_SECONDS_BETWEEN = 10.0
"""Lower bound of that pause."""


@dataclass
class Build:
    """A build that is waiting or running, or the last one, which has ended (``ended`` is set)."""

    at: Position
    """Size and time of the log when the build began."""
    began: float
    """Time of :func:`time.monotonic`, as ``ended``."""
    step: str = "waiting"
    """A step of :data:`STEPS`, or ``waiting`` for another build to end."""
    ended: float | None = None
    fault: str = ""
    """Why the build gave no cache, in one line; empty if it did."""
    task: asyncio.Task[None] | None = None

    @property
    def steps(self) -> list[tuple[str, Literal["done", "now", "next"]]]:
        """All steps, each with its state."""
        current = STEPS.index(self.step) if self.step in STEPS else -1
        return [(name, "done" if n < current else "now" if n == current else "next") for n, name in enumerate(STEPS)]

    @property
    def seconds(self) -> float:
        """Duration of the build so far, or in all if it has ended."""
        return (self.ended or time.monotonic()) - self.began


@dataclass(frozen=True)
class Ready:
    """A cache that can be queried. ``older``: the log has grown since, and a new cache is being built or due soon."""

    path: Path
    older: bool


class Caches:
    """The caches of all runs under one judge."""

    def __init__(self, judge: str, folder: Path) -> None:
        self.judge = judge
        self.folder = folder
        self._builds: dict[Path, Build] = {}
        self._one_at_a_time = asyncio.Semaphore(1)

    async def of(self, run: FoundRun) -> Ready | Build:
        """Return the cache of a run, or the build that makes it; start a build if one is due."""
        path = self._path(run)
        key = await asyncio.to_thread(key_of, run.folder, self.judge)
        cache_fit = await asyncio.to_thread(fit, path, key)
        if cache_fit == "current":
            touch(path)
            return Ready(path, older=False)
        build = self._builds.get(run.folder)
        if build is None or (build.ended is not None and self._is_due(build, run)):
            build = self._begin(run, path)
        return Ready(path, older=True) if cache_fit == "older" else build

    def faults(self) -> dict[Path, str]:
        """Return why the last build of a run gave no cache, by the run's folder."""
        return {folder: build.fault for folder, build in self._builds.items() if build.fault}

    def best(self, run: FoundRun) -> BestRow | None:
        """Return the best row of a run from its cache; None if there is no cache yet."""
        return best_row(self._path(run), key_of(run.folder, self.judge))

    def _path(self, run: FoundRun) -> Path:
        return cache_path(self.folder, run.folder, self.judge)

    async def close(self) -> None:
        """Cancel the builds that are running and wait until they have ended."""
        tasks = [build.task for build in self._builds.values() if build.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_due(self, build: Build, run: FoundRun) -> bool:
        assert build.ended is not None
        if position(run.folder) == build.at and build.fault:
            return False
        pause = max(LEAST_SECONDS_BETWEEN, AGAIN_AFTER * (build.ended - build.began))
        return time.monotonic() - build.ended >= pause or not self._path(run).exists()

    def _begin(self, run: FoundRun, path: Path) -> Build:
        build = Build(position(run.folder), time.monotonic())
        self._builds[run.folder] = build
        build.task = asyncio.create_task(self._run(build, run, path))
        return build

    async def _run(self, build: Build, run: FoundRun, path: Path) -> None:
        """Run a build in a process when no other build is running, and record its steps and its end."""
        async with self._one_at_a_time:
            build.began = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "memarena.viewer.cache_build", str(run.folder), self.judge, str(path),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                async for line in process.stdout:
                    build.step = line.decode().strip()
                stderr = (await process.stderr.read()).decode(errors="replace").strip()
                if await process.wait():
                    build.fault = stderr.splitlines()[-1] if stderr else f"ended with exit code {process.returncode}"
            except asyncio.CancelledError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
                raise
            finally:
                build.ended = time.monotonic()


CACHE_FAULTS = (sqlite3.Error, OSError)
"""Exceptions of a cache that was removed or damaged after it was opened."""
