"""What a run finds out before it makes a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.client.backend import Security
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.config import parse_config
from memarena.execution.planning.preflight import check_network
from memarena.execution.planning.request import RunRequest
from memarena.log.store import log_path

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def test_a_backend_that_cannot_be_started_is_found_before_the_others_run(
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


@pytest.mark.parametrize("address", ["8.8.8.8:50051", "[2001:4860:4860::8888]:50051"])
def test_a_life_is_sent_beyond_private_networks_only_by_tls_and_with_a_token(address: str, tmp_path: Path) -> None:
    for security in (Security(), Security(tls_ca=tmp_path / "ca.pem"), Security(bearer_token="t")):
        with pytest.raises(RunError, match=r"--backend mine: .* lies beyond private networks, .* --tls-ca and"):
            check_network("mine", address, security)
    check_network("mine", address, Security(tls_ca=tmp_path / "ca.pem", bearer_token="t"))


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "localhost:1", "[::1]:1", "192.168.7.9:1", "10.1.2.3:1", "172.18.0.2:1"]
)
def test_private_networks_need_neither(address: str) -> None:
    check_network("mine", address, Security())
