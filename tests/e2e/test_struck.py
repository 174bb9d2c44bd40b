"""Any backend, struck down in the middle of an Ingest and of a Search: the same answers, the same scores, once each."""

from __future__ import annotations

import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from memarena.cli.main import app
from memarena.client.backend import BackendClient, TimedSearch
from memarena.log.records import IngestDone, Problem
from memarena.log.store import read_records
from memarena.run.config import parse_config
from memarena.run.engine import execute
from memarena.run.request import RunRequest
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from tests.memobase.double import TOKEN, Double, Models
from tests.memobase.scripted_models import CHAT_MODEL, EMBEDDING_MODEL, ScriptedModels

from .harnessing import EXAMPLE, answers, asked, times_answered

MODULES = {
    "bm25": "memarena_backend_bm25",
    "vanilla": "memarena_backend_vanilla_oracle",
    "memsearch": "memarena_backend_memsearch",
    "memobase": "memarena_backend_memobase",
}
ASKS_MODELS = {"memsearch", "memobase"}
CELL_TOKEN = "the-key-the-server-was-given"
INGEST, SEARCH = 2, 3
"""Which Ingest and which Search of the run is struck: a day that has one before it, a question that has others."""


@dataclass
class Striker:
    """Sends a signal to the backend's process while a call is pending, and holds the call until it is gone.

    A backend that asks models is struck while it waits for one; another one while its day is half sent, and while it
    is stopped with a question before it.
    """

    module: str
    number: signal.Signals
    by_model: bool
    ingests: int = 0
    searches: int = 0
    struck: int = 0
    armed: bool = False

    def strike(self) -> None:
        """Hit the backend and wait for its end."""
        self.struck += 1
        process = self.process()
        process.send_signal(self.number)
        psutil.wait_procs([process], timeout=20)

    def process(self) -> psutil.Process:
        """The backend's own process, which stands below one that guards it."""
        for process in psutil.Process().children(recursive=True):
            words = process.cmdline()
            if self.module in words and "memarena.processes" not in words:
                return process
        raise AssertionError(f"no process of {self.module}")

    def held(self) -> None:
        """What a model's server does before it answers."""
        if self.armed:
            self.armed = False
            self.strike()

    def half(self, frames: Iterable[pb.IngestRequest]) -> Iterator[pb.IngestRequest]:
        """A day whose sender is struck with after the first frame."""
        for place, frame in enumerate(frames):
            if place == 1:
                self.strike()
            yield frame

    def wrap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """See every Ingest and Search that the harness sends."""
        ingest, search = BackendClient.ingest, BackendClient.search

        def struck_ingest(client: BackendClient, frames: Iterable[pb.IngestRequest]) -> tuple[pb.IngestResponse, int]:
            self.ingests += 1
            due = self.ingests == INGEST
            self.armed = due and self.by_model
            return ingest(client, self.half(frames) if due and not self.by_model else frames)

        def struck_search(client: BackendClient, request: pb.SearchRequest) -> TimedSearch:
            self.searches += 1
            due = self.searches == SEARCH
            self.armed = due and self.by_model
            if due and not self.by_model:
                self.process().suspend()
                threading.Timer(0.3, self.strike).start()
            return search(client, request)

        monkeypatch.setattr(BackendClient, "ingest", struck_ingest)
        monkeypatch.setattr(BackendClient, "search", struck_search)


def play(backend: str, out: Path, monkeypatch: pytest.MonkeyPatch, striker: Striker | None) -> Path:
    """A run of one backend over a few questions, behind models by rule where it asks any."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    values: dict[str, object] = {
        "dataset": EXAMPLE,
        "backends": [backend],
        "readers": [{"spec": "extractive"}],
        "meters": ["none"],
        "limit": 6,
        "floor_samples": 0,
        "gateway_port": port,
    }
    with ExitStack() as stack, monkeypatch.context() as patch:
        if backend in ASKS_MODELS:
            models = stack.enter_context(ScriptedModels())
            values["embedder"] = {"spec": models.base_url, "model": EMBEDDING_MODEL}
            values["extractor"] = {"spec": models.base_url, "model": CHAT_MODEL}
            models.held = striker.held if striker is not None else models.held
        if backend == "memobase":
            server = Models(f"http://127.0.0.1:{port}/v1", CELL_TOKEN, "extractor", "embedder")
            patch.setenv("MEMOBASE_URL", stack.enter_context(Double(server)).url)
            patch.setenv("MEMOBASE_TOKEN", TOKEN)
        if striker is not None:
            striker.wrap(patch)
        request = RunRequest(out=out, config=parse_config(values, "test"), cell_token=CELL_TOKEN)
        assert execute(request).reason == "completed"
    return out


def scores_of(run: Path) -> list[str]:
    """The tables of ``memarena score``."""
    printed = CliRunner().invoke(app, ["score", str(run), "--format", "md"])
    assert printed.exit_code == 0, printed.output
    return [line for line in printed.output.splitlines() if line.startswith("|")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A run of a backend that nothing disturbed, made once."""
    made: dict[str, Path] = {}

    def run_of(backend: str) -> Path:
        if backend not in made:
            with pytest.MonkeyPatch.context() as patch:
                made[backend] = play(backend, tmp_path_factory.mktemp(backend) / "run", patch, None)
        return made[backend]

    return run_of


@pytest.mark.parametrize(
    ("backend", "number"),
    [*((backend, signal.SIGKILL) for backend in MODULES), ("memobase", signal.SIGTERM)],
)
def test_a_backend_struck_in_an_ingest_and_in_a_search_costs_no_answer(
    undisturbed: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    number: signal.Signals,
) -> None:
    whole = undisturbed(backend)
    striker = Striker(MODULES[backend], number, backend in ASKS_MODELS)
    run = play(backend, tmp_path / "run", monkeypatch, striker)
    assert striker.struck == 2
    assert answers(run) == answers(whole)
    assert scores_of(run) == scores_of(whole) != []
    days = [r for r in read_records(run, "ingest") if isinstance(r, IngestDone)]
    assert [r.code for r in days if r.code != "OK"] in (["UNAVAILABLE"], ["CANCELLED"])
    lost = [r for r in asked(run) if r.status != "answered"]
    assert [r.attempt for r in lost] == [0], [r.cause for r in lost]
    assert Counter(times_answered(run).values()) == {1: 5, 2: 1}, "each is asked once, the lost one twice"
    problems = [r.message for r in read_records(run, "problem") if isinstance(r, Problem)]
    assert sum("was started again" in message for message in problems) == 2
    assert sum("it is asked again" in message for message in problems) == 1
