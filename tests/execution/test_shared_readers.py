"""Tests ReaderHost: runs share one reader server by its configuration, and a server that ended is started again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from memarena.execution.models.model_pool import ReaderPool, start_configured
from memarena.execution.models.shared_readers import VARIABLE, ReaderHost, may_be_shared, published
from memarena.execution.planning.model_config import ReaderConfig
from memarena.readers.errors import ReaderError
from memarena.readers.types import RunningReader

EXTRACTIVE = ReaderConfig(spec="extractive")


class _Started:
    """Starts readers and keeps them in ``readers``."""

    def __init__(self) -> None:
        self.readers: list[RunningReader] = []

    def __call__(self, config: ReaderConfig, work_dir: Path) -> RunningReader:
        self.readers.append(start_configured(config, work_dir))
        return self.readers[-1]


@pytest.fixture
def started() -> _Started:
    return _Started()


@pytest.fixture
def host(tmp_path: Path, started: _Started, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReaderHost]:
    host = ReaderHost(tmp_path / "readers", started)
    monkeypatch.setenv(VARIABLE, str(host.folder))
    yield host
    host.stop()


def test_parallel_runs_share_one_server_and_leave_it_running(
    host: ReaderHost, started: _Started, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(host.need, [EXTRACTIVE] * 4))
    (reader,) = started.readers
    for _ in range(2):
        with ReaderPool((EXTRACTIVE,), tmp_path, None) as readers:
            assert readers["extractive"].ref == reader.ref
            assert readers["extractive"].upstream == reader.upstream
    assert reader.alive()
    host.stop()
    assert not reader.alive()
    assert published(EXTRACTIVE) is None


def test_a_display_name_shares_the_server_and_another_window_does_not(host: ReaderHost, started: _Started) -> None:
    host.need(EXTRACTIVE)
    named_reader = EXTRACTIVE.model_copy(update={"name": "short"})
    host.need(named_reader)
    assert len(started.readers) == 1 and published(named_reader) is not None
    assert published(EXTRACTIVE.model_copy(update={"window_tokens": 512})) is None


def test_a_server_that_ended_is_unpublished_and_started_again(host: ReaderHost, started: _Started) -> None:
    host.need(EXTRACTIVE)
    started.readers[0].stop()
    assert published(EXTRACTIVE) is None
    host.need(EXTRACTIVE)
    reader = published(EXTRACTIVE)
    assert reader is not None and reader.ref == started.readers[1].ref


def test_a_run_starts_its_own_reader_if_the_host_could_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(config: ReaderConfig, work_dir: Path) -> RunningReader:
        raise ReaderError("no room")

    host = ReaderHost(tmp_path / "readers", fails)
    monkeypatch.setenv(VARIABLE, str(host.folder))
    host.need(EXTRACTIVE)
    with ReaderPool((EXTRACTIVE,), tmp_path, None) as readers:
        assert readers["extractive"].process is not None


@pytest.mark.parametrize(
    ("config", "timed", "expected"),
    [
        (ReaderConfig(spec="embedded"), False, True),
        (ReaderConfig(spec="embedded"), True, False),
        (ReaderConfig(spec="http://127.0.0.1:1/v1"), False, False),
        (ReaderConfig(spec="sglang:a/b", prefill="cold"), False, True),
        (ReaderConfig(spec="sglang:a/b", prefill="cold"), True, True),
        (ReaderConfig(spec="sglang:a/b", prefill="warm"), False, False),
        (ReaderConfig(spec="sglang:a/b", prefill="warm"), True, True),
    ],
)
def test_which_readers_may_be_shared(config: ReaderConfig, timed: bool, expected: bool) -> None:
    assert may_be_shared(config, timed=timed) is expected
