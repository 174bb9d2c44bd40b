"""Fixtures: a Memobase double with scripted models, and the backend in front of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena_backend_memobase import MemobaseMemory
from memarena_backend_memobase.settings import Settings
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import Served, make_day, make_query, make_session, serve
from tests.memobase.double import TOKEN, Double, Models
from tests.memobase.scripted_models import scripted_models
from tests.support.model_server import ModelServer

ACCESS = pb.ModelAccess(
    base_url="http://127.0.0.1:9/v1",
    token="the-cell's",
    models=[pb.Model(name="extractor", role=pb.MODEL_ROLE_EXTRACTOR)],
)


def day_of(namespace: str, day: int, *sessions: pb.Session, batch_id: str | None = None) -> list[pb.IngestRequest]:
    """All frames of a day, with model access."""
    frames = make_day(namespace, day, sessions, batch_id=batch_id)
    frames[0].header.model_access.CopyFrom(ACCESS)
    return frames


def told(session_id: str, *texts: str, day: int = 0) -> pb.Session:
    """A session in which the owner says each text and the friend replies "I see."."""
    return make_session(session_id, [part for text in texts for part in (text, "I see.")], day=day)


def question(text: str, day: int, **options: str) -> pb.SearchRequest:
    """A question about namespace ``n`` with model access."""
    pairs = [pb.Option(key=key, value=value) for key, value in sorted(options.items())]
    return make_query("n", text, day, model_access=ACCESS, options=pairs)


def texts_of(items: Iterable[pb.MemoryItem]) -> list[str]:
    return [item.text for item in items]


@dataclass
class Stack:
    """Scripted models, the server's double that calls them, and what a backend needs to reach the double."""

    models: ModelServer
    double: Double
    settings: Settings
    data_dir: Path

    def memory(self) -> MemobaseMemory:
        return MemobaseMemory(self.data_dir, self.settings)

    @property
    def environment(self) -> dict[str, str]:
        """Variables for a backend that runs as its own process."""
        return {"MEMOBASE_URL": self.settings.url, "MEMOBASE_TOKEN": self.settings.token}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with scripted_models() as models, Double(Models(models.base_url)) as double:
        yield Stack(models, double, Settings(double.url, TOKEN, start_timeout_s=5.0), tmp_path / "data")


@pytest.fixture
def served(stack: Stack) -> Iterator[Served]:
    with serve(stack.memory(), stack.data_dir) as running:
        yield running
