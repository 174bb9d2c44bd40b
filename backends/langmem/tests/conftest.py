"""Runs the backend langmem as a process in its own environment, with a scripted extractor; it embeds by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from memarena.execution.backends.manifests import load_manifest

from backends.langmem.tests.scripted_extractor import reply_of
from tests.backends.own_environment import EXTRACTOR, NOTHING, RunningBackend, lacking, started
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parents[1]
BACKEND = load_manifest(FOLDER / "backend.toml")[0]
sys.path.append(str(FOLDER / "src"))  # modules without LangMem are tested even if the backend is not installed
LACKING = lacking(BACKEND)


@contextmanager
def running(
    work_dir: Path, base_url: str, *, code: str = "", settings: Mapping[str, str] = NOTHING
) -> Iterator[RunningBackend]:
    """Start the backend; its process runs ``code`` first."""
    start = f"{code}\nimport runpy; runpy.run_module('memarena_backend_langmem', run_name='__main__', alter_sys=True)"
    with started((BACKEND.python, "-c", start), work_dir, settings) as (served, process):
        yield RunningBackend(served, process, base_url, (EXTRACTOR,))


@pytest.fixture(scope="module")
def _extractor() -> Iterator[ModelServer]:
    with ModelServer(reply_of) as serving:
        yield serving


@pytest.fixture
def extractor(_extractor: ModelServer) -> ModelServer:
    """Return the extractor, reset to its rules and without recorded requests."""
    _extractor.rehearse()
    return _extractor


@pytest.fixture(scope="module")
def _backend(_extractor: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBackend]:
    with running(tmp_path_factory.mktemp("langmem"), _extractor.base_url) as started:
        yield started


@pytest.fixture
def backend(_backend: RunningBackend, extractor: ModelServer) -> RunningBackend:
    """Return the process that the tests of a file share; they use different namespaces."""
    _backend.base_url, _backend.offered = extractor.base_url, (EXTRACTOR,)
    return _backend
