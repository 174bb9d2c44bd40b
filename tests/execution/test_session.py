"""Tests BackendSession: a backend that has ended is detected before the next request is sent to it."""

from __future__ import annotations

import threading
from pathlib import Path

import grpc
import pytest
from memarena.client.backend import Deadlines, Security
from memarena.client.connection import ConnectionWatch
from memarena.execution.backends import session as linking
from memarena.execution.backends.manifests import choose_backend
from memarena.execution.backends.session import BackendAwayError, BackendGoneError, BackendSession
from memarena.log.records import Cell, Reading

from .capture import CapturingBackend

CELL = Cell(
    cell_id="x@y/s1",
    backend="x",
    reader="y",
    seed_label="s1",
    reading=Reading(max_answer_tokens=1, max_context_tokens=1),
    diagnostic=False,
)


class Launched:
    """A fake process: serves until its port is closed, and then stays alive until it is stopped.

    ``looks`` is the number of calls of ``alive`` after which it ends by itself; None: never.
    """

    def __init__(self, *, looks: int | None = None) -> None:
        self.backend = CapturingBackend()
        self.address = self.backend.address
        self.stopped = False
        self._looks = looks

    def close_port(self) -> None:
        self.backend.__exit__()

    def alive(self) -> bool:
        """Return False once the process was stopped or ``alive`` was called ``looks`` times."""
        if self._looks is not None:
            self._looks -= 1
        return not self.stopped and (self._looks is None or self._looks > 0)

    def death(self) -> str:
        return "exit code 0: "

    def stop(self) -> None:
        self.stopped = True
        self.close_port()


def opened(monkeypatch: pytest.MonkeyPatch, folder: Path, *processes: Launched) -> BackendSession:
    """Return an open session whose backend is the first process; a restart uses the next."""
    waiting = iter(processes)
    monkeypatch.setattr(linking, "launch", lambda *_, **__: next(waiting))
    monkeypatch.setattr(linking, "_DEATH_GRACE_S", 0.05)
    link = BackendSession(choose_backend("bm25"), folder, Deadlines(health_s=5), Security())
    link.open(CELL)
    return link


@pytest.mark.parametrize("code", ["UNAVAILABLE", "CANCELLED", "UNKNOWN"])
def test_a_backend_that_serves_on_after_a_failed_call_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    link = opened(monkeypatch, tmp_path, process := Launched())
    link.settle_failure(code)
    assert not link.lost()
    assert link.revive() is None
    assert not process.stopped
    link.close()


@pytest.mark.parametrize("code", ["UNAVAILABLE", "CANCELLED", "UNKNOWN"])
def test_a_backend_that_closed_its_port_gets_time_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    link = opened(monkeypatch, tmp_path, process := Launched(looks=12), Launched())
    process.close_port()
    link.settle_failure(code)
    assert link.lost()
    assert not process.stopped, "it was left to end by itself"
    assert link.revive() == "the backend's process ended and was started again: exit code 0: "
    assert not link.lost()
    assert link.returns == 1
    link.close()


def test_a_backend_that_closed_its_port_and_does_not_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = opened(monkeypatch, tmp_path, process := Launched(), Launched())
    monkeypatch.setattr(linking, "_END_GRACE_S", 0.3)
    process.close_port()
    link.settle_failure("CANCELLED")
    assert process.stopped
    notice = link.revive()
    assert notice is not None
    assert "it served no more, had not ended" in notice
    link.close()


def test_a_backend_at_an_address_that_does_not_come_back_is_gone(tmp_path: Path) -> None:
    backend = CapturingBackend()
    link = BackendSession(choose_backend(backend.address), tmp_path, Deadlines(health_s=0.5), Security())
    link.open(CELL)
    backend.__exit__()
    link.settle_failure("CANCELLED")
    assert link.lost()
    with pytest.raises(BackendAwayError, match="went away and did not come back"):
        link.revive()
    with pytest.raises(BackendGoneError, match="went away and did not come back"):
        _ = link.client


def test_a_backend_at_an_address_that_keeps_losing_its_days_is_gone(tmp_path: Path) -> None:
    """Otherwise its days would be sent again without end."""
    with CapturingBackend() as backend:
        link = BackendSession(choose_backend(backend.address), tmp_path, Deadlines(), Security(), restarts=2)
        link.open(CELL)
        link.note_days_lost()
        link.note_days_lost()
        with pytest.raises(BackendGoneError, match="lost its days more than 2 times"):
            link.note_days_lost()
        link.close()


def test_the_watch_of_a_connection_ends_before_the_channel_closes() -> None:
    """gRPC's watching thread raises if the channel is closed meanwhile, which would fail a test."""
    with CapturingBackend() as backend, grpc.insecure_channel(backend.address) as channel:
        threads_before = set(threading.enumerate())
        watch = ConnectionWatch(channel)
        watching = set(threading.enumerate()) - threads_before
        assert watching
        watch.end()
    for thread in watching:
        thread.join(timeout=10)
        assert not thread.is_alive()
