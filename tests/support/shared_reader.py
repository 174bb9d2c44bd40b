"""Fixtures: one extractive reader for all runs of a test process, as its start takes a third of a small run's time.

The extractive reader is the reader without a model: it answers with words of its prompt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena.readers import starting
from memarena.readers.types import RunningReader


@pytest.fixture(scope="session")
def _extractive_readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int | None, RunningReader]]:
    """Readers by context window; each is started by the first run that needs it, and ended with the session."""
    readers: dict[int | None, RunningReader] = {}
    yield readers
    for reader in readers.values():
        reader.stop()


@pytest.fixture(scope="module")
def shared_extractive_reader(
    _extractive_readers: dict[int | None, RunningReader], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Let runs in this process with the reader ``extractive`` share one, which none of them ends.

    Not for tests of how readers are started, watched or ended.
    """
    start = starting._start_extractive

    def shared(work_dir: Path, window_tokens: int | None) -> RunningReader:
        if window_tokens not in _extractive_readers:
            _extractive_readers[window_tokens] = start(tmp_path_factory.mktemp("reader"), window_tokens)
        return dataclasses.replace(_extractive_readers[window_tokens], process=None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starting, "_start_extractive", shared)
        yield
