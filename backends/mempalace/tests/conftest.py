"""The backend as a process in its own environment, before scripted embedders."""

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
sys.path.append(str(FOLDER / "src"))  # what needs no MemPalace is tested where the backend is not installed
LACKING = lacking(BACKEND)
EMBEDDER = "null-embedder"
IN_PROCESS = {"MEMARENA_MEMPALACE_EMBEDDER": "process"}


@dataclass
class Running(RunningBackend):
    """The backend before ``embedder``, where there is one."""

    embedder: ModelServer | None = None
    model: str = EMBEDDER
    """The name by which the embedder is offered."""

    def access(self) -> pb.ModelAccess | None:
        self.base_url = self.embedder.base_url if self.embedder else ""
        self.offered = (pb.Model(name=self.model, role=pb.MODEL_ROLE_EMBEDDER),)
        return super().access()

    def embedded(self) -> list[str]:
        """Texts that the embedder was given so far."""
        sent = [each.body["input"] for each in self.embedder.received] if self.embedder else []
        return [str(text) for texts in sent if isinstance(texts, list) for text in texts]


@contextmanager
def running(
    work_dir: Path,
    embedder: ModelServer | None = None,
    *,
    code: str = "",
    settings: Mapping[str, str] = NOTHING,
) -> Iterator[Running]:
    """Start the backend; ``code`` is run in its process before it."""
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
    """The backend before a scripted embedder of this test's own. It is one process for a file: namespaces differ."""
    _served.embedder, _served.model = embedder, EMBEDDER
    return _served


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The backend with the model inside it, and offered none."""
    with running(tmp_path_factory.mktemp("alone"), settings=IN_PROCESS) as started:
        yield started


FAILING = Script(status=503)
