"""Runs one backend that is killed during an Ingest and during a Search, and reads the scores that the run ends with.

``test_struck.py`` compares them with those of an undisturbed run: a crash must lose no day and ask no question twice.
"""

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
"""Ordinal of the Ingest and of the Search during which the backend is killed, counted from 1."""


@dataclass
class Striker(abc.ABC):
    """Ends the backend while a call is pending, and delays the call until the backend has ended.

    With ``by_model`` the backend calls models: it is ended while it waits for the model's reply. Otherwise it is ended
    after the first frame of a day, and, for a Search, while it is frozen with the request pending.
    """

    by_model: bool
    stubborn: bool = False
    """Whether the backend is ended at every attempt at the question ``victim``, and not only at the first."""
    ingests: int = 0
    searches: int = 0
    struck: int = 0
    """How often the backend was ended."""
    armed: bool = False
    """Whether the backend is to be ended at the next call of a model."""
    victim: str = ""
    """Text of the question whose Search was hit first; empty before."""

    @abc.abstractmethod
    def end(self) -> None:
        """End the backend, and return when it has ended."""

    @abc.abstractmethod
    def freeze(self) -> None:
        """Suspend the backend until it is ended."""

    def strike(self) -> None:
        """End the backend and count it."""
        self.struck += 1
        self.end()

    def held(self) -> None:
        """Called by the model server before it replies: end the backend if that is due."""
        if self.armed:
            self.armed = False
            self.strike()

    def half(self, frames: Iterable[pb.IngestRequest]) -> Iterator[pb.IngestRequest]:
        """Yield the frames of a day, and end the backend after the first."""
        for index, frame in enumerate(frames):
            if index == 1:
                self.strike()
            yield frame

    def due(self, question: str) -> bool:
        """Count a Search and return whether the backend is to be ended during it."""
        self.searches += 1
        if self.searches == SEARCH:
            self.victim = question
            return True
        return self.stubborn and question == self.victim

    def wrap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Patch the harness's client so that this object sees every Ingest and Search."""
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
    """Run one backend over a few questions, with scripted models if it needs any; return ``out``.

    ``backend`` is its name, or ``NAME=image:…``; ``striker`` ends it during the run (None: an undisturbed run);
    ``more`` are further fields of the configuration.
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
    """Return a function from a backend's name to its undisturbed run, which is made at the first call."""
    runs: dict[str, Path] = {}

    def run_of(backend: str) -> Path:
        if backend not in runs:
            with pytest.MonkeyPatch.context() as patch:
                runs[backend] = play(spec_of(backend), folders.mktemp(backend) / "run", patch, None)
        return runs[backend]

    return run_of


def scores_of(run: Path) -> list[str]:
    """Return the table rows that ``memarena score`` prints."""
    result = CliRunner().invoke(app, ["score", str(run), "--format", "md"])
    assert result.exit_code == 0, result.output
    return [line for line in result.output.splitlines() if line.startswith("|")]


def outcomes_of(run: Path) -> dict[Key, tuple[Outcome | None, float | None]]:
    """Return (outcome, token F1) of each question."""
    scored = evaluate(run)
    return {
        (question.cell_id, question.instance_id): (question.outcome, question.token_f1) for question in scored.questions
    }
