"""The backend as a process in its own environment, before scripted models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.execution.backends.manifests import load_manifest
from memarena_proto import memory_backend_pb2 as pb

from backends.mem0.tests.scripted_models import EMBEDDER, EXTRACTOR, ScriptedModels
from tests.backends.own_environment import RunningBackend, lacking, started

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # what needs no Mem0 is tested where the backend is not installed
LACKING = lacking(BACKEND)
MODELS = (
    pb.Model(name=EXTRACTOR, role=pb.MODEL_ROLE_EXTRACTOR),
    pb.Model(name=EMBEDDER, role=pb.MODEL_ROLE_EMBEDDER),
)


@dataclass(kw_only=True)
class Running(RunningBackend):
    """The backend before ``models``."""

    models: ScriptedModels


@contextmanager
def running(
    variant: str, work_dir: Path, models: ScriptedModels, *, before: tuple[str, ...] = ("-m", "memarena_backend_mem0")
) -> Iterator[Running]:
    """Start a variant; ``before`` is what its Python runs."""
    with started((BACKEND.python, *before, "--variant", variant), work_dir) as (served, process):
        yield Running(served, process, models.base_url, MODELS, models=models)


@pytest.fixture(scope="module")
def models() -> Iterator[ScriptedModels]:
    with ScriptedModels() as serving:
        yield serving


@pytest.fixture(scope="module")
def _extracting(models: ScriptedModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running("mem0", tmp_path_factory.mktemp("mem0"), models) as started:
        yield started


@pytest.fixture
def extracting(_extracting: Running) -> Iterator[Running]:
    """The variant mem0; its models are as they were before the test."""
    models = _extracting.models
    reply, before = models.reply, models.before_embedding
    yield _extracting
    models.reply, models.before_embedding, models.embedding_status = reply, before, 200
    _extracting.offered = MODELS
