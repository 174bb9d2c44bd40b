"""Runs the backends mem0 and mem0_raw as processes in their own environment, with scripted models."""

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
sys.path.append(str(FOLDER / "src"))  # modules without Mem0 are tested even if the backend is not installed
LACKING = lacking(BACKEND)


@dataclass(kw_only=True)
class Running(RunningBackend):
    """A running backend that is offered ``models``."""

    models: ModelServer


@contextmanager
def running(
    variant: str, work_dir: Path, models: ModelServer, *, before: tuple[str, ...] = ("-m", "memarena_backend_mem0")
) -> Iterator[Running]:
    """Start a variant; ``before`` are the arguments of its Python before the backend's own."""
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
    """Return the variant mem0, with its models reset to their rules."""
    _extracting.models.rehearse()
    _extracting.offered = MODELS
    return _extracting
