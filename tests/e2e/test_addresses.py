"""A backend at an address that is ended and comes back, with its memory or without: found out, proven, made good."""

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
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, message: str) -> None:
        self.lines.append(message)


def test_who_answers_at_an_address_is_told(tmp_path: Path, start: Callable[..., AtAddress]) -> None:
    """Name, version, kind and contract, whatever name the user gave it."""
    told, backend = Told(), start()
    play(backend, tmp_path / "run", names=("mine",), display=told)
    assert f"backend at {backend.address}: bm25 {VERSION} (competitor, contract 1.2)" in told.lines


@pytest.mark.parametrize("names", [("memsearch",), ("bm25", "memsearch")])
def test_another_backend_than_the_one_asked_for_is_refused(
    tmp_path: Path, start: Callable[..., AtAddress], names: Sequence[str]
) -> None:
    """Before there is a log: figures of bm25 must not stand beside the name of another memory."""
    backend = start()
    with pytest.raises(RunError, match=rf"--backend memsearch={backend.address}: bm25 .* answered there; write bm25="):
        play(backend, tmp_path / "run", names=names)
    assert not (tmp_path / "run" / "run.sqlite").exists()


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
