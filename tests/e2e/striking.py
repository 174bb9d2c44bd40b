"""Runs of one backend that is struck down in the middle of an Ingest and of a Search, and what they end with."""

from __future__ import annotations

import abc
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.client.backend import BackendClient, TimedSearch
from memarena.evaluation import evaluate
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import Outcome
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from tests.memobase.double import TOKEN, Double, Models
from tests.memobase.scripted_models import scripted_models
from tests.support.model_server import EMBEDDER, EXTRACTOR

from .harnessing import EXAMPLE, Key

ASKS_MODELS = {"memsearch", "memobase"}
CELL_TOKEN = "the-key-the-server-was-given"
INGEST, SEARCH = 2, 3
"""Which Ingest and which Search of the run is struck: a day that has one before it, a question that has others."""


@dataclass
class Striker(abc.ABC):
    """Ends the backend while a call is pending, and holds the call until it is gone.

    A backend that asks models is struck while it waits for one; another one while its day is half sent, and while it
    is stopped with a question before it.
    """

    by_model: bool
    stubborn: bool = False
    """Whether the question that was struck is struck whenever it is asked."""
    ingests: int = 0
    searches: int = 0
    struck: int = 0
    armed: bool = False
    victim: str = ""
    """The question that is struck."""

    @abc.abstractmethod
    def end(self) -> None:
        """End the backend, and return when it has ended."""

    @abc.abstractmethod
    def freeze(self) -> None:
        """Have the backend stand still until it is ended."""

    def strike(self) -> None:
        self.struck += 1
        self.end()

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

    def due(self, question: str) -> bool:
        """Whether this Search is struck; counts them."""
        self.searches += 1
        if self.searches == SEARCH:
            self.victim = question
            return True
        return self.stubborn and question == self.victim

    def wrap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """See every Ingest and Search that the harness sends."""
        ingest, search = BackendClient.ingest, BackendClient.search

        def struck_ingest(client: BackendClient, frames: Iterable[pb.IngestRequest]) -> tuple[pb.IngestResponse, int]:
            self.ingests += 1
            due = self.ingests == INGEST
            self.armed = due and self.by_model
            return ingest(client, self.half(frames) if due and not self.by_model else frames)

        def struck_search(client: BackendClient, request: pb.SearchRequest) -> TimedSearch:
            due = self.due(request.text)
            self.armed = due and self.by_model
            if due and not self.by_model:
                self.freeze()
                threading.Timer(0.3, self.strike).start()
            return search(client, request)

        monkeypatch.setattr(BackendClient, "ingest", struck_ingest)
        monkeypatch.setattr(BackendClient, "search", struck_search)


def play(
    backend: str,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    striker: Striker | None,
    more: Mapping[str, object] | None = None,
) -> Path:
    """A run of one backend over a few questions, behind models by rule where it asks any.

    ``backend`` is its name, or ``NAME=image:…``; ``more`` are settings of the run that this does not make.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    name = backend.partition("=")[0]
    values: dict[str, object] = {
        "dataset": EXAMPLE,
        "backends": [backend],
        "readers": [{"spec": "extractive"}],
        "meters": ["none"],
        "limit": 6,
        "floor_samples": 0,
        "gateway_port": port,
        **(more or {}),
    }
    with ExitStack() as stack, monkeypatch.context() as patch:
        if name in ASKS_MODELS:
            models = stack.enter_context(scripted_models())
            values["embedder"] = {"spec": models.base_url, "model": EMBEDDER}
            values["extractor"] = {"spec": models.base_url, "model": EXTRACTOR}
            if striker is not None:
                models.before_chat = striker.held
                models.before_embedding = lambda _: striker.held()
        if name == "memobase":
            server = Models(f"http://127.0.0.1:{port}/v1", CELL_TOKEN, "extractor", "embedder")
            patch.setenv("MEMOBASE_URL", stack.enter_context(Double(server)).url)
            patch.setenv("MEMOBASE_TOKEN", TOKEN)
        if striker is not None:
            striker.wrap(patch)
        request = RunRequest(out=out, config=parse_config(values, "test"), cell_token=CELL_TOKEN)
        assert execute(request).reason == "completed"
    return out


def once_each(folders: pytest.TempPathFactory, spec_of: Callable[[str], str]) -> Callable[[str], Path]:
    """A run of a backend that nothing disturbed, by its name, made when it is first asked for."""
    made: dict[str, Path] = {}

    def run_of(backend: str) -> Path:
        if backend not in made:
            with pytest.MonkeyPatch.context() as patch:
                made[backend] = play(spec_of(backend), folders.mktemp(backend) / "run", patch, None)
        return made[backend]

    return run_of


def scores_of(run: Path) -> list[str]:
    """The tables of ``memarena score``."""
    printed = CliRunner().invoke(app, ["score", str(run), "--format", "md"])
    assert printed.exit_code == 0, printed.output
    return [line for line in printed.output.splitlines() if line.startswith("|")]


def outcomes_of(run: Path) -> dict[Key, tuple[Outcome | None, float | None]]:
    """Outcome and score of each question."""
    scored = evaluate(run)
    return {(each.cell_id, each.instance_id): (each.outcome, each.token_f1) for each in scored.questions}
