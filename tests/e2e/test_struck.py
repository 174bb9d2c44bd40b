"""Tests every backend, killed during an Ingest and during a Search: the same answers and scores, each question once."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from memarena.log.records import IngestDone, Problem
from memarena.log.store import read_records

from tests.support.psutil_processes import command_lines_below

from .harnessing import answers, asked, times_answered
from .striking import ASKS_MODELS, Striker, once_each, play, scores_of

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

MODULES = {
    "bm25": "memarena_backend_bm25",
    "vanilla": "memarena_backend_vanilla_oracle",
    "memsearch": "memarena_backend_memsearch",
    "memobase": "memarena_backend_memobase",
}


@dataclass
class ProcessStriker(Striker):
    """Sends a signal to the backend's process."""

    module: str = ""
    number: signal.Signals = signal.SIGKILL

    def end(self) -> None:
        process = self.process()
        process.send_signal(self.number)
        psutil.wait_procs([process], timeout=20)

    def freeze(self) -> None:
        self.process().suspend()

    def process(self) -> psutil.Process:
        """Return the backend's own process, the child of the process that guards it."""
        for process, words in command_lines_below(psutil.Process()):
            if self.module in words and not {"memarena.processes", "memarena.confinement"} & set(words):
                return process
        raise AssertionError(f"no process of {self.module}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return once_each(tmp_path_factory, str)


@pytest.mark.parametrize(
    ("backend", "number"),
    [*((backend, signal.SIGKILL) for backend in MODULES), ("memobase", signal.SIGTERM)],
)
def test_a_backend_killed_in_an_ingest_and_in_a_search_loses_no_answer(
    undisturbed: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    number: signal.Signals,
) -> None:
    undisturbed_run = undisturbed(backend)
    striker = ProcessStriker(backend in ASKS_MODELS, module=MODULES[backend], number=number)
    run = play(backend, tmp_path / "run", monkeypatch, striker)
    assert striker.struck == 2
    assert answers(run) == answers(undisturbed_run)
    assert scores_of(run) == scores_of(undisturbed_run) != []
    days = [r for r in read_records(run, "ingest") if isinstance(r, IngestDone)]
    # Twice if a busy machine has not yet ended the process when the day is sent again.
    assert {r.code for r in days if r.code != "OK"} in ({"UNAVAILABLE"}, {"CANCELLED"})
    lost_attempts = [r for r in asked(run) if r.status != "answered"]
    assert [r.attempt for r in lost_attempts] == [0], [r.cause for r in lost_attempts]
    assert Counter(times_answered(run).values()) == {1: 5, 2: 1}, "each is asked once, the lost one twice"
    problems = [r.message for r in read_records(run, "problem") if isinstance(r, Problem)]
    assert sum("was started again" in message for message in problems) == 2
    assert sum("it is asked again" in message for message in problems) == 1
