"""Tests backends at an address that end and come back, with or without their memory: detected, verified, repaired.

The harness did not start such a backend and cannot restart it; a memory that came back empty would be scored as one
that forgets, unless that is noticed.
"""

from __future__ import annotations

import importlib.metadata
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from memarena.client.backend import BackendClient, Deadlines, TimedSearch
from memarena.execution.display import Display, SilentDisplay
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import NamespaceOpened, Problem
from memarena.log.store import read_records
from memarena_proto import memory_backend_pb2 as pb

from .harnessing import EXAMPLE, answers, asked

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

VERSION = importlib.metadata.version("memarena-backend-bm25")


class AtAddress:
    """A bm25 at its own port, which can be replaced by another process while calls go to it.

    With ``forgets`` each process starts with an empty data folder.
    """

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
        """Kill the process and start another at the same address."""
        self._process.kill()
        self._process.wait()
        self._process = self._start()

    def replace_while_called(self) -> None:
        """Suspend the process, so that a call made now stays pending, and replace it after 0.3 s."""
        psutil.Process(self._process.pid).suspend()
        threading.Timer(0.3, self.replace).start()

    def start_again(self) -> None:
        """Start a process after ``close``."""
        self._process = self._start()

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Answers of an undisturbed run by instance id."""
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
    for backend in started:
        backend.close()


def play(backend: AtAddress, out: Path, *, names: Sequence[str] = ("bm25",), display: Display | None = None) -> Path:
    values = {
        "dataset": EXAMPLE,
        "backends": [f"{name}={backend.address}" for name in names],
        "readers": [{"spec": "extractive"}],
        "meters": ["none"],
        "limit": 6,
        "floor_samples": 0,
    }
    assert execute(RunRequest(out=out, config=parse_config(values, "test")), display).reason == "completed"
    return out


class Told(SilentDisplay):
    """A display that records the lines of ``note``."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, message: str) -> None:
        self.lines.append(message)


def test_the_backend_at_an_address_is_described_in_a_line(tmp_path: Path, start: Callable[..., AtAddress]) -> None:
    """The line has name, version, kind and contract, whatever name the user gave to the address."""
    display, backend = Told(), start()
    play(backend, tmp_path / "run", names=("mine",), display=display)
    assert f"backend at {backend.address}: bm25 {VERSION} (competitor, contract 1.2)" in display.lines


@pytest.mark.parametrize("names", [("memsearch",), ("bm25", "memsearch")])
def test_another_backend_than_the_named_one_is_refused(
    tmp_path: Path, start: Callable[..., AtAddress], names: Sequence[str]
) -> None:
    """It is refused before there is a log: figures of bm25 must not appear under the name of another memory."""
    backend = start()
    with pytest.raises(RunError, match=rf"--backend memsearch={backend.address}: bm25 .* answered there; write bm25="):
        play(backend, tmp_path / "run", names=names)
    assert not (tmp_path / "run" / "run.sqlite").exists()


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("moment", ["search", "between", "ingest"])
def test_a_backend_replaced_at_its_address_is_verified_before_it_is_used(
    whole: dict[str, str],
    tmp_path: Path,
    start: Callable[..., AtAddress],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    forgets: bool,
) -> None:
    """The backend is replaced during a Search, between two calls, and before the second day.

    Between two calls no call fails, and an empty memory would accept the second day as its first. A backend with its
    memory continues, without it all days are sent again; no answer changes.
    """
    backend = start(forgets=forgets)
    counts = {"search": 0, "ingest": 0}
    search, ingest = BackendClient.search, BackendClient.ingest

    def disturbed_search(client: BackendClient, request: pb.SearchRequest) -> TimedSearch:
        counts["search"] += 1
        if moment == "search" and counts["search"] == 2:
            backend.replace_while_called()
        result = search(client, request)
        if moment == "between" and counts["search"] == 2:
            backend.replace()
            BackendClient(backend.address, client.deadlines).wait_until_serving()
        return result

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
    lost_attempts = [r for r in asked(out) if r.status != "answered"]
    assert len(lost_attempts) == (1 if moment == "search" or (moment == "between" and forgets) else 0)
    assert sum("it is asked again" in message for message in problems) == len(lost_attempts)


def test_a_backend_that_stays_away_interrupts_only_its_cell_and_the_run_can_be_resumed(
    whole: dict[str, str], tmp_path: Path, start: Callable[..., AtAddress], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No question counts against the backend: all stay open, also the one whose call was lost."""
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
    last_attempts = {r.cell_id.partition("@")[0]: r for r in asked(out)}
    assert (last_attempts["leaving"].status, last_attempts["leaving"].lost) == ("backend_failed", True)
    problems = [r.message for r in read_records(out, "problem") if isinstance(r, Problem)]
    assert (
        sum("the cell is interrupted: the backend went away and did not come back" in message for message in problems)
        == 1
    )
    leaving.start_again()
    BackendClient(leaving.address, Deadlines()).wait_until_serving()
    assert execute(RunRequest(out=out, resume=True)).reason == "completed"
    for name in ("leaving", "staying"):
        assert {key[1]: text for key, text in answers(out).items() if key[0].startswith(name)} == whole
