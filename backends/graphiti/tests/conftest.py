"""Runs the backend graphiti as a process in its own environment, with scripted models."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.execution.backends.manifests import load_manifest

from backends.graphiti.tests.scripted_extractor import reply_of
from tests.backends.own_environment import MODELS, NOTHING, RunningBackend, lacking, started
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # modules without Graphiti are tested even if the backend is not installed
LACKING = lacking(BACKEND)


@dataclass(kw_only=True)
class Running(RunningBackend):
    """A running backend that is offered ``models``."""

    models: ModelServer

    def facts(self, namespace: str, day: int) -> list[str]:
        """Return the texts of the facts about dogs, in alphabetical order."""
        return sorted(item.text for item in self.search(namespace, "What is my dog called?", day, entities="0"))


@contextmanager
def running(
    work_dir: Path,
    models: ModelServer,
    settings: Mapping[str, str] = NOTHING,
    *,
    before: tuple[str, ...] = (),
) -> Iterator[Running]:
    """Start the backend; ``before`` is a command line in front of its own, for a program that starts it."""
    program = (*before, BACKEND.python, "-m", "memarena_backend_graphiti")
    with started(program, work_dir, settings) as (served, process):
        yield Running(served, process, models.base_url, MODELS, models=models)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(reply_of) as serving:
        yield serving


@pytest.fixture
def backend(tmp_path: Path, models: ModelServer) -> Iterator[Running]:
    with running(tmp_path, models) as started:
        yield started
