"""Tests the preflight: checks that a run makes before it writes a log."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest
from memarena.client.backend import Security
from memarena.execution import engine
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.preflight import check_loopback, check_network, check_out
from memarena.execution.planning.request import RunRequest
from memarena.log.store import LOCK_NAME, LogError, LogWriter, lock_log, log_path

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def test_a_backend_that_cannot_start_is_reported_before_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMOBASE_URL", raising=False)
    monkeypatch.setenv("MEMOBASE_TOKEN", "token")
    values = {
        "dataset": EXAMPLE,
        "backends": ["bm25", "memobase"],
        "readers": [{"spec": "extractive"}],
        "floor_samples": 0,
        "meters": ["none"],
    }
    with pytest.raises(RunError, match="--backend memobase: cannot be started: MEMOBASE_URL must be set"):
        execute(RunRequest(out=tmp_path / "run", config=parse_config(values, "test")))
    assert not log_path(tmp_path / "run").exists()


def test_a_second_run_is_refused_before_it_starts_anything_in_the_folder(tmp_path: Path) -> None:
    out = tmp_path / "run"
    lock = lock_log(out)
    with pytest.raises(LogError, match="another process is writing this log"):
        execute(a_run(out))
    assert [path.name for path in out.iterdir()] == [LOCK_NAME]
    os.close(lock)
    check_out(a_run(out))


def test_a_run_that_appears_in_the_folder_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    monkeypatch.setattr(engine, "refuse_invalid", lambda _dataset: LogWriter(out).close())
    with pytest.raises(RunError, match="holds a run already"):
        execute(a_run(out))
    LogWriter(out).close()  # the lock was released


def a_run(out: Path) -> RunRequest:
    """Return a request for a run of bm25 over the example."""
    values = {"dataset": EXAMPLE, "backends": ["bm25"], "readers": [{"spec": "extractive"}]}
    return RunRequest(out=out, config=parse_config(values, "test"))


@pytest.mark.parametrize("address", ["8.8.8.8:50051", "[2001:4860:4860::8888]:50051"])
def test_backends_outside_private_networks_need_tls_and_a_token(address: str, tmp_path: Path) -> None:
    for security in (Security(), Security(tls_ca=tmp_path / "ca.pem"), Security(bearer_token="t")):
        with pytest.raises(RunError, match=r"--backend mine: .* lies beyond private networks, .* --tls-ca and"):
            check_network("mine", address, security)
    check_network("mine", address, Security(tls_ca=tmp_path / "ca.pem", bearer_token="t"))


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "localhost:1", "[::1]:1", "192.168.7.9:1", "10.1.2.3:1", "172.18.0.2:1"]
)
def test_backends_in_private_networks_need_neither_tls_nor_token(address: str) -> None:
    check_network("mine", address, Security())


def test_a_machine_without_an_ipv4_loopback_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(address: tuple[str, int]) -> socket.socket:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    check_loopback()
    monkeypatch.setattr(socket, "create_server", without)
    with pytest.raises(RunError, match=r"^127\.0\.0\.1: Cannot assign requested address; expected an IPv4 loopback"):
        check_loopback()
