"""Starts sweeps of a few questions, signals their driver at a chosen moment, and reads their results."""

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
"""Outcome, token F1, cause and answer by (cell id, instance id): what a sweep and a plain run must agree on."""


def sweep_file(folder: Path, memories: Sequence[str], more: str = "", worlds: str = "", limit: int = 6) -> Path:
    """Write the file of a sweep over the example with the extractive reader; return its path."""
    path = folder / "sweep.toml"
    memory_tables = "".join(f'[[memories]]\nname = "{name}"\n' for name in memories)
    path.write_text(
        f'{more}\n{worlds or f"""[[worlds]]{chr(10)}dataset = "{EXAMPLE}" """}\n{memory_tables}'
        f'[[readers]]\nspec = "extractive"\n[run]\nlimit = {limit}\n',
        encoding="utf-8",
    )
    return path


def settled(facts: RunFacts) -> Settled:
    """Return outcome, token F1, cause and answer of each question, by (cell id, instance id)."""
    answers = {
        key: attempts[-1].record.answer.answer if attempts[-1].record.answer is not None else None
        for key, attempts in facts.attempts.items()
    }
    return {
        (question.cell_id, question.instance_id): (
            question.outcome,
            question.token_f1,
            question.why,
            answers[question.cell_id, question.instance_id],
        )
        for question in evaluate(facts).questions
    }


def of_run(folder: Path) -> Settled:
    """Return the results of a plain run."""
    return settled(load_facts(folder))


def of_sweep(folder: Path) -> list[Settled]:
    """Return the results of a sweep, one mapping for each world."""
    return [settled(source.load()[0]) for source in run_sources(folder)]


def reader_urls(folder: Path) -> list[str]:
    """Return the reader's URL of each cell of a sweep, sorted."""
    runs = (load_facts(folder / "cells" / name) for name in read_manifest(folder).sealed)
    return sorted(str(reader.base_url) for run in runs for reader in run.started.manifest.readers)


def sent(folder: Path) -> list[str]:
    """Return the cells that the driver sent to nodes, in order."""
    return [record.cell for record in records(folder) if isinstance(record, Sent)]


def state(folder: Path) -> SweepState:
    """Return the state by the manifest; empty if there is none yet."""
    return read_manifest(folder) if is_sweep(folder) else SweepState()


def asked_so_far(scratch: Path) -> int:
    """Return the number of questions in the logs of unfinished cells."""
    return sum(count(log.parent, "asked") for log in scratch.glob("cells/*/run/run.sqlite"))


def struck(
    arguments: Sequence[str | Path], moment: Callable[[], bool], number: signal.Signals, command: str = "sweep"
) -> tuple[int, list[psutil.Process]]:
    """Start a sweep and send its driver a signal at a moment; return the exit code and the surviving processes."""
    driver = start(command, *arguments)
    wait_until(moment, driver)
    if sys.platform == "linux":  # worlds with their gold lie in these folders, and every process can read this
        with contextlib.suppress(psutil.NoSuchProcess):
            paths = {str(argument) for argument in arguments if isinstance(argument, Path)}
            assert paths.isdisjoint(psutil.Process(driver.pid).cmdline())
    family = kill(driver, number)
    return driver.returncode, survivors(family, 60.0)


def working_in(folder: Path, timeout_s: float = 60.0) -> list[str]:
    """Return command lines that still name a path in the folder when ``timeout_s`` has passed; empty once none does."""
    deadline = time.monotonic() + timeout_s
    while True:
        command_lines = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if process.pid != os.getpid() and any(f"{folder}/" in word for word in words):
                    command_lines.append(" ".join(words)[:200])
        if not command_lines or time.monotonic() > deadline:
            return command_lines
        time.sleep(0.1)
