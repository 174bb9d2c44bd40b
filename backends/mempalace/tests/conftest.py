"""Runs the backend mempalace as a process in its own environment, with scripted embedders."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.execution.backends.manifests import load_manifest
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.own_environment import NOTHING, RunningBackend, lacking, started
from tests.support.model_script import Script
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # modules without MemPalace are tested even if the backend is not installed
LACKING = lacking(BACKEND)
EMBEDDER = "null-embedder"
IN_PROCESS = {"MEMARENA_MEMPALACE_EMBEDDER": "process"}


@dataclass
class Running(RunningBackend):
    """A running backend that is offered ``embedder``, or no model if that is None."""

    embedder: ModelServer | None = None
    model: str = EMBEDDER
    """The name under which the embedder is offered."""

    def access(self) -> pb.ModelAccess | None:
        self.base_url = self.embedder.base_url if self.embedder else ""
        self.offered = (pb.Model(name=self.model, role=pb.MODEL_ROLE_EMBEDDER),)
        return super().access()

    def embedded(self) -> list[str]:
        """Return the texts that the embedder has received so far."""
        inputs = [request.body["input"] for request in self.embedder.received] if self.embedder else []
        return [str(text) for texts in inputs if isinstance(texts, list) for text in texts]


@contextmanager
def running(
    work_dir: Path,
    embedder: ModelServer | None = None,
    *,
    code: str = "",
    settings: Mapping[str, str] = NOTHING,
) -> Iterator[Running]:
    """Start the backend; its process runs ``code`` first."""
    start = f"{code}\nimport runpy; runpy.run_module('memarena_backend_mempalace', run_name='__main__', alter_sys=True)"
    with started((BACKEND.python, "-c", start), work_dir, settings) as (served, process):
        yield Running(served, process, embedder=embedder)


@pytest.fixture
def embedder() -> Iterator[ModelServer]:
    with ModelServer(model=EMBEDDER) as serving:
        yield serving


@pytest.fixture(scope="module")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("gateway")) as started:
        yield started


@pytest.fixture
def gateway(_served: Running, embedder: ModelServer) -> Running:
    """Return the process that the tests of a file share, with a new embedder; tests use different namespaces."""
    _served.embedder, _served.model = embedder, EMBEDDER
    return _served


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start the backend with the embedding model inside its process and no offered model."""
    with running(tmp_path_factory.mktemp("alone"), settings=IN_PROCESS) as started:
        yield started


FAILING = Script(status=503)
