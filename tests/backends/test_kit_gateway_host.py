"""Tests that a base_url is accepted only on the caller's host, or on a host that the backend was configured with."""

from __future__ import annotations

import pytest
from memarena_backend.errors import CallError
from memarena_backend.gateway_host import HOSTS_VARIABLE, check_gateway_host

LOCAL, REMOTE = "ipv4:127.0.0.1:40001", "ipv4:198.51.100.4:40001"


@pytest.mark.parametrize(
    ("base_url", "peer"),
    [
        ("http://127.0.0.1:8100/v1", LOCAL),
        ("http://localhost:8100/v1", "ipv6:%5B::1%5D:40001"),
        ("http://127.0.0.1:8100/v1", "unix:/run/backend"),
        ("http://198.51.100.4:8100/v1", REMOTE),
        ("https://198.51.100.4/v1", "ipv6:%5B::ffff:198.51.100.4%5D:40001"),
    ],
)
def test_the_callers_own_host_is_taken(base_url: str, peer: str) -> None:
    check_gateway_host(base_url, peer, "model_access.base_url")


@pytest.mark.parametrize(
    ("base_url", "peer"),
    [
        ("http://203.0.113.7:9/v1", LOCAL),
        ("http://198.51.100.9:8100/v1", REMOTE),
        ("http://127.0.0.1:8100/v1", REMOTE),  # the backend's own machine, which a stranger must not reach through it
        ("http://no-such-host.invalid/v1", LOCAL),
        ("file:///etc/hosts", LOCAL),
        ("http://[::1/v1", LOCAL),
        ("not a url", LOCAL),
    ],
)
def test_any_other_host_is_refused_by_name(base_url: str, peer: str) -> None:
    with pytest.raises(CallError) as refused:
        check_gateway_host(base_url, peer, "search.model_access.base_url")
    assert refused.value.code.name == "INVALID_ARGUMENT"
    assert "search.model_access.base_url" in str(refused.value)


def test_a_host_that_was_set_up_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, "gateway.example, other.example")
    check_gateway_host("http://gateway.example:8100/v1", REMOTE, "model_access.base_url")
    with pytest.raises(CallError):
        check_gateway_host("http://third.invalid:8100/v1", REMOTE, "model_access.base_url")
