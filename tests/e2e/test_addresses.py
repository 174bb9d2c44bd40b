"""A backend at an address that is ended and comes back, with its memory or without: found out, proven, made good."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from memarena.client.backend import BackendClient, Deadlines, TimedSearch
from memarena.execution.engine import execute
from memarena.execution.planning.config import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import NamespaceOpened, Problem
from memarena.log.store import read_records
from memarena_proto import memory_backend_pb2 as pb

from .harnessing import EXAMPLE, answers, asked


class AtAddress:
    """A backend at a port of its own, which can be replaced by another process while calls go to it."""

    def __init__(self, folder: Path, *, forgets: bool = False) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self._folder = folder
        self._forgets = forgets
        self._starts = 0
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        data = self._folder / f"data-{self._starts if self._forgets else 0}"
        self._starts += 1
        command = [sys.executable, "-m", "memarena_backend_bm25", "--listen", self.address, "--data-dir", str(data)]
        with (self._folder / "backend.log").open("ab") as log:
            return subprocess.Popen(command, stderr=log)

    def replace(self) -> None:
        """SIGKILL, then a new process."""
        self._process.kill()
        self._process.wait()
        self._process = self._start()

    def replace_while_called(self) -> None:
        """Stop it, so that a call made now stays with it, and replace it soon."""
        psutil.Process(self._process.pid).suspend()
        threading.Timer(0.3, self.replace).start()

    def start_again(self) -> None:
        """After it was ended: a new process."""
        self._process = self._start()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The answers of a backend that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    backend = AtAddress(folder)
    try:
        return {instance: text for (_, instance), text in answers(play(backend, folder / "run")).items()}
    finally:
        backend.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., AtAddress]]:
    started: list[AtAddress] = []

    def begin(*, forgets: bool = False) -> AtAddress:
        folder = tmp_path / f"backend-{len(started)}"
        folder.mkdir()
        started.append(AtAddress(folder, forgets=forgets))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def play(backend: AtAddress, out: Path) -> Path:
    values = {
        "dataset": EXAMPLE,
        "backends": [f"bm25={backend.address}"],
        "readers": [{"spec": "extractive"}],
        "meters": ["none"],
        "limit": 6,
        "floor_samples": 0,
    }
    assert execute(RunRequest(out=out, config=parse_config(values, "test"))).reason == "completed"
    return out


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("moment", ["search", "between", "ingest"])
def test_a_backend_that_was_replaced_at_its_address_is_proven_before_it_is_used(
    whole: dict[str, str],
    tmp_path: Path,
    start: Callable[..., AtAddress],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    forgets: bool,
) -> None:
    """While it searches, where no call fails at all, and before a second day that an empty memory takes as its first.

    With its memory it goes on, without it the days come in again; no answer changes.
    """
    backend = start(forgets=forgets)
    counts = {"search": 0, "ingest": 0}
    search, ingest = BackendClient.search, BackendClient.ingest

    def disturbed_search(client: BackendClient, request: pb.SearchRequest) -> TimedSearch:
        counts["search"] += 1
        if moment == "search" and counts["search"] == 2:
            backend.replace_while_called()
        found = search(client, request)
        if moment == "between" and counts["search"] == 2:
            backend.replace()
            BackendClient(backend.address, client.deadlines).wait_until_serving()
        return found

    def disturbed_ingest(client: BackendClient, frames: Iterable[pb.IngestRequest]) -> tuple[pb.IngestResponse, int]:
        counts["ingest"] += 1
        if moment == "ingest" and counts["ingest"] == 2:
            backend.replace()
            BackendClient(backend.address, client.deadlines).wait_until_serving()
        return ingest(client, frames)

    monkeypatch.setattr(BackendClient, "search", disturbed_search)
    monkeypatch.setattr(BackendClient, "ingest", disturbed_ingest)
    out = play(backend, tmp_path / "run")
    assert {instance: text for (_, instance), text in answers(out).items()} == whole
    problems = [r.message for r in read_records(out, "problem") if isinstance(r, Problem)]
    assert sum("went away and came back" in message for message in problems) == 1, problems
    attempts = [r.attempt for r in read_records(out, "namespace") if isinstance(r, NamespaceOpened)]
    assert attempts.count(1) == (1 if forgets else 0)
    assert any("no longer knew day" in message for message in problems) == forgets
    lost = [r for r in asked(out) if r.status != "answered"]
    assert len(lost) == (1 if moment == "search" or (moment == "between" and forgets) else 0)
    assert sum("it is asked again" in message for message in problems) == len(lost)


def test_a_backend_that_is_gone_for_good_interrupts_its_cell_alone_and_the_run_goes_on_when_it_is_back(
    whole: dict[str, str], tmp_path: Path, start: Callable[..., AtAddress], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is held against it: its questions stay open, also the one that was lost with it."""
    leaving, staying = start(), start()
    searches = iter(range(1000))
    search = BackendClient.search

    def disturbed(client: BackendClient, request: pb.SearchRequest) -> TimedSearch:
        if next(searches) == 1:
            leaving.close()
        return search(client, request)

    monkeypatch.setattr(BackendClient, "search", disturbed)
    out = tmp_path / "run"
    values = {
        "dataset": EXAMPLE,
        "backends": [f"leaving={leaving.address}", f"staying={staying.address}"],
        "readers": [{"spec": "extractive"}],
        "meters": ["none"],
        "limit": 6,
        "floor_samples": 0,
        "deadlines_s": {"health": 4},
    }
    for backend in (leaving, staying):
        BackendClient(backend.address, Deadlines()).wait_until_serving()
    outcome = execute(RunRequest(out=out, config=parse_config(values, "test")))
    assert (outcome.reason, outcome.left) == ("incomplete", 5)
    ended = {r.cell_id.partition("@")[0]: r for r in asked(out)}
    assert (ended["leaving"].status, ended["leaving"].lost) == ("backend_failed", True)
    problems = [r.message for r in read_records(out, "problem") if isinstance(r, Problem)]
    assert sum("the cell is interrupted: the backend went away and did not come back" in each for each in problems) == 1
    leaving.start_again()
    BackendClient(leaving.address, Deadlines()).wait_until_serving()
    assert execute(RunRequest(out=out, resume=True)).reason == "completed"
    for name in ("leaving", "staying"):
        assert {key[1]: text for key, text in answers(out).items() if key[0].startswith(name)} == whole
