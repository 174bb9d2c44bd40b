"""Runs the backend memos for its tests, and makes its modules that need no library importable from its folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.memos.tests.scripted_extractor import reply_of
from backends.memos.tests.system import Running, reason_to_skip, running
from tests.support.model_server import ModelServer

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Start a model server that extracts and embeds by rules."""
    with ModelServer(reply_of) as scripted:
        yield scripted


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a process for all tests of a file, since a start takes seconds; skip if the backend is not installed."""
    if (reason := reason_to_skip()) is not None:
        pytest.skip(reason)
    with (
        ModelServer(reply_of) as scripted,
        running(tmp_path_factory.mktemp("memos"), scripted) as started,
    ):
        yield started


@pytest.fixture
def backend(_shared: Running) -> Running:
    """Return the shared process, without any namespaces, and with its model reset to its rules."""
    _shared.forget_all()
    return _shared


@pytest.fixture
def mortal(tmp_path: Path, model: ModelServer) -> Iterator[Running]:
    """Start a process that the test may kill; its data are below ``tmp_path``."""
    if (reason := reason_to_skip()) is not None:
        pytest.skip(reason)
    with running(tmp_path, model) as started:
        yield started
