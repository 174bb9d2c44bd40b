"""Caches are built in processes of their own, one at a time, while pages say how far that is."""

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
"""A log that is being written is read again after so many times the time that reading it took,"""
LEAST_SECONDS_BETWEEN = 10.0
"""and not sooner than this."""


@dataclass
class Build:
    """A build that goes on, or how the last one ended."""

    at: Position
    """How far the log reached when it began."""
    began: float
    step: str = "waiting"
    ended: float | None = None
    fault: str = ""
    """Why there is no cache, in one line."""
    task: asyncio.Task[None] | None = None

    @property
    def steps(self) -> list[tuple[str, Literal["done", "now", "next"]]]:
        """All steps, and where it is."""
        at = STEPS.index(self.step) if self.step in STEPS else -1
        return [(name, "done" if n < at else "now" if n == at else "next") for n, name in enumerate(STEPS)]

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return (self.ended or time.monotonic()) - self.began


@dataclass(frozen=True)
class Ready:
    """A cache that can be asked. ``older``: the log has grown since, and a new one is on its way or due soon."""

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
        """The cache of a run, or the build that makes it; begins one where it is due."""
        path = self._path(run)
        key = await asyncio.to_thread(key_of, run.folder, self.judge)
        there = await asyncio.to_thread(fit, path, key)
        if there == "current":
            touch(path)
            return Ready(path, older=False)
        build = self._builds.get(run.folder)
        if build is None or (build.ended is not None and self._is_due(build, run)):
            build = self._begin(run, path)
        return Ready(path, older=True) if there == "older" else build

    def faults(self) -> dict[Path, str]:
        """Why the last build of a run gave no cache, by its folder."""
        return {folder: build.fault for folder, build in self._builds.items() if build.fault}

    def best(self, run: FoundRun) -> BestRow | None:
        """The first row of a run by its cache; None where it was not read yet."""
        return best_row(self._path(run), key_of(run.folder, self.judge))

    def _path(self, run: FoundRun) -> Path:
        return cache_path(self.folder, run.folder, self.judge)

    async def close(self) -> None:
        """End the builds that go on."""
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
                said = (await process.stderr.read()).decode(errors="replace").strip()
                if await process.wait():
                    build.fault = said.splitlines()[-1] if said else f"ended with exit code {process.returncode}"
            except asyncio.CancelledError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
                raise
            finally:
                build.ended = time.monotonic()


CACHE_FAULTS = (sqlite3.Error, OSError)
"""What a cache that was removed or damaged meanwhile raises."""
