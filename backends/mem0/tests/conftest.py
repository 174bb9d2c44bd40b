"""The backend as a process in its own environment, before scripted models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.execution.backends.manifests import load_manifest

from backends.mem0.tests.scripted_extractor import reply_of
from tests.backends.own_environment import MODELS, RunningBackend, lacking, started
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # what needs no Mem0 is tested where the backend is not installed
LACKING = lacking(BACKEND)


@dataclass(kw_only=True)
class Running(RunningBackend):
    """The backend before ``models``."""

    models: ModelServer


@contextmanager
def running(
    variant: str, work_dir: Path, models: ModelServer, *, before: tuple[str, ...] = ("-m", "memarena_backend_mem0")
) -> Iterator[Running]:
    """Start a variant; ``before`` is what its Python runs."""
    with started((BACKEND.python, *before, "--variant", variant), work_dir) as (served, process):
        yield Running(served, process, models.base_url, MODELS, models=models)


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with ModelServer(reply_of) as serving:
        yield serving


@pytest.fixture(scope="module")
def _extracting(models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running("mem0", tmp_path_factory.mktemp("mem0"), models) as started:
        yield started


@pytest.fixture
def extracting(_extracting: Running) -> Running:
    """The variant mem0; its models do as they should when a test begins."""
    _extracting.models.rehearse()
    _extracting.offered = MODELS
    return _extracting
