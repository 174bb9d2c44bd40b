"""The backend is not installed where the tests run: its modules that need no library are imported from its folder."""

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
    """A model that extracts and embeds by rules."""
    with ModelServer(reply_of) as scripted:
        yield scripted


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One process for a file's tests, since a start takes seconds. Skipped where it is not asked for or not there."""
    if (reason := reason_to_skip()) is not None:
        pytest.skip(reason)
    with (
        ModelServer(reply_of) as scripted,
        running(tmp_path_factory.mktemp("memos"), scripted) as started,
    ):
        yield started


@pytest.fixture
def backend(_shared: Running) -> Running:
    """The backend in its own environment, before a scripted model that does as it should; it remembers nothing."""
    _shared.forget_all()
    return _shared


@pytest.fixture
def mortal(tmp_path: Path, model: ModelServer) -> Iterator[Running]:
    """A process of the test's own, which it may kill; its data are below ``tmp_path``."""
    if (reason := reason_to_skip()) is not None:
        pytest.skip(reason)
    with running(tmp_path, model) as started:
        yield started
