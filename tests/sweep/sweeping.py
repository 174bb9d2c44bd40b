"""Sweeps of a few questions, struck at moments that tests choose, and what they come to."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from memarena.cli.scores import run_sources
from memarena.evaluation import evaluate, load_facts
from memarena.scoring.run_facts import RunFacts
from memarena.sweep.manifest import Sent, SweepState, is_sweep, read_manifest, records

from tests.e2e.harnessing import EXAMPLE, count, kill, start, survivors, wait_until

MEMORIES = ("bm25", "vanilla")
Settled = dict[tuple[str, str], tuple[object, ...]]


def sweep_file(folder: Path, memories: Sequence[str], more: str = "", worlds: str = "", limit: int = 6) -> Path:
    """The file of a sweep over the example with the extractive reader."""
    path = folder / "sweep.toml"
    named = "".join(f'[[memories]]\nname = "{name}"\n' for name in memories)
    path.write_text(
        f'{more}\n{worlds or f"""[[worlds]]{chr(10)}dataset = "{EXAMPLE}" """}\n{named}'
        f'[[readers]]\nspec = "extractive"\n[run]\nlimit = {limit}\n',
        encoding="utf-8",
    )
    return path


def settled(facts: RunFacts) -> Settled:
    """Outcome, verdict and answer of each question of each cell."""
    answers = {
        key: attempts[-1].record.answer.answer if attempts[-1].record.answer is not None else None
        for key, attempts in facts.attempts.items()
    }
    return {
        (each.cell_id, each.instance_id): (
            each.outcome,
            each.token_f1,
            each.why,
            answers[each.cell_id, each.instance_id],
        )
        for each in evaluate(facts).questions
    }


def of_run(folder: Path) -> Settled:
    """Of a plain run."""
    return settled(load_facts(folder))


def of_sweep(folder: Path) -> list[Settled]:
    """Of a sweep, for each of its worlds."""
    return [settled(source.load()[0]) for source in run_sources(folder)]


def reader_urls(folder: Path) -> list[str]:
    """Where each cell of a sweep reached its reader, sorted."""
    runs = (load_facts(folder / "cells" / name) for name in read_manifest(folder).sealed)
    return sorted(str(reader.base_url) for run in runs for reader in run.started.manifest.readers)


def sent(folder: Path) -> list[str]:
    """Cells that were sent, in order."""
    return [record.cell for record in records(folder) if isinstance(record, Sent)]


def state(folder: Path) -> SweepState:
    """What the manifest says; nothing while there is none."""
    return read_manifest(folder) if is_sweep(folder) else SweepState()


def asked_so_far(scratch: Path) -> int:
    """Questions in the logs of unfinished cells."""
    return sum(count(log.parent, "asked") for log in scratch.glob("cells/*/run/run.sqlite"))


def struck(
    arguments: Sequence[str | Path], moment: Callable[[], bool], number: signal.Signals, command: str = "sweep"
) -> tuple[int, list[psutil.Process]]:
    """Start a sweep, send its driver a signal at a moment; its exit code, and what is left of its processes."""
    driver = start(command, *arguments)
    wait_until(moment, driver)
    if sys.platform == "linux":  # worlds with their gold lie in these folders, and every process can read this
        with contextlib.suppress(psutil.NoSuchProcess):
            named = {str(each) for each in arguments if isinstance(each, Path)}
            assert named.isdisjoint(psutil.Process(driver.pid).cmdline())
    family = kill(driver, number)
    return driver.returncode, survivors(family, 60.0)


def working_in(folder: Path, timeout_s: float = 60.0) -> list[str]:
    """Processes that name something in a folder on their command line and are still there after a while."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if process.pid != os.getpid() and any(f"{folder}/" in word for word in words):
                    found.append(" ".join(words)[:200])
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)
