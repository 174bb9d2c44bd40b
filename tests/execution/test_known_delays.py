"""Tests bench/_scripted_backend.py and bench/_scripted_reader.py, the servers that check the harness's stopwatch.

They speak the protocols of real servers, and never answer earlier than the delay they were configured with.
"""

from __future__ import annotations

import http.client
import importlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from memarena.client.backend import BackendClient, Deadlines
from memarena.client.errors import BackendCallError
from memarena.gateway import CallContext, Gateway, Upstream
from memarena.log.records import GatewayCall
from memarena_answering import Asker, Completion, ContextItem, ReaderClient, ReadingPlan, build_prompt, count_by_bytes
from memarena_proto import memory_backend_pb2 as pb

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

BENCH = Path(__file__).parents[2] / "bench"
NOW = "2025-01-01T00:00:00Z"
REQUEST = pb.SearchRequest(namespace="n", query_id="q", text="What?", asked_at=NOW)
DELAYS_MS = (0.0, 1.0, 30.0)

Serving = Callable[[str, float], AbstractContextManager[str]]


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Serving:
    monkeypatch.syspath_prepend(str(BENCH))
    # bench/ is a folder of scripts, not a package.
    scripted_serving: Serving = importlib.import_module("_scripted").serving
    return scripted_serving


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
def test_a_search_takes_and_reports_at_least_the_configured_delay(serving: Serving, delay_ms: float) -> None:
    with serving("_scripted_backend", delay_ms) as address, BackendClient(address, Deadlines()) as client:
        client.wait_until_serving()
        for _ in range(3):
            timed = client.search(REQUEST)
            assert [item.text for item in timed.response.items] == ["nothing"]
            assert timed.response.search_time_us >= delay_ms * 1e3
            assert timed.duration_ns >= delay_ms * 1e6


def test_one_connection_transfers_more_than_its_initial_flow_control_windows(serving: Serving) -> None:
    """HTTP/2 allows 64 KiB each way at first; large requests and many replies need further WINDOW_UPDATE frames."""
    large = pb.SearchRequest(namespace="n", query_id="q", text="x" * 100_000, asked_at=NOW)
    with serving("_scripted_backend", 0.0) as address, BackendClient(address, Deadlines()) as client:
        for request in (large, large, *[REQUEST] * 800, large):
            assert client.search(request).response.items


def test_two_clients_are_served_at_once(serving: Serving) -> None:
    with serving("_scripted_backend", 20.0) as address:

        def search() -> None:
            with BackendClient(address, Deadlines()) as client:
                search_times_us.append(client.search(REQUEST).response.search_time_us)

        search_times_us: list[int] = []
        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(search_times_us) == 2
    assert min(search_times_us) >= 20_000


def test_rpcs_that_the_scripted_backend_does_not_serve_are_unimplemented(serving: Serving) -> None:
    with serving("_scripted_backend", 0.0) as address, BackendClient(address, Deadlines()) as client:
        with pytest.raises(BackendCallError) as caught:
            client.describe()
        assert caught.value.code == "UNIMPLEMENTED"
        assert client.search(REQUEST).response.items


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
def test_a_first_token_through_the_gateway_takes_at_least_the_configured_delay(
    serving: Serving, delay_ms: float
) -> None:
    calls: list[GatewayCall] = []
    with serving("_scripted_reader", delay_ms) as address:
        upstream = Upstream(model="m", base_url=f"http://{address}/v1", upstream_model="m")
        with Gateway([upstream], calls.append) as gateway:
            completions = [completion(gateway, "m") for _ in range(3)]
    assert {reply.text for reply in completions} == {Script().text}
    for call in calls:
        assert (call.status, call.error) == (200, "")
        assert call.server_prompt_ms is not None
        assert call.server_prompt_ms >= delay_ms
        assert call.first_content_ns is not None
        assert call.first_content_ns >= delay_ms * 1e6
    assert len(calls) == 3


def test_the_scripted_reader_answers_like_the_null_reader(serving: Serving) -> None:
    with serving("_scripted_reader", 0.0) as address, ModelServer() as null:
        scripted = Upstream(model="scripted", base_url=f"http://{address}/v1", upstream_model="scripted")
        with Gateway([scripted, null.upstream(name="null")], lambda call: None) as gateway:
            assert completion(gateway, "scripted") == completion(gateway, "null")


def test_unknown_routes_of_the_scripted_reader_fail_and_keep_the_connection_open(serving: Serving) -> None:
    with serving("_scripted_reader", 0.0) as address:
        connection = http.client.HTTPConnection(address, timeout=10)
        for route in ("/v1/embeddings", "/v1/completions"):
            connection.request("POST", route, "{}")
            reply = connection.getresponse()
            assert (reply.status, reply.read()) == (404, b"")
        connection.close()


def test_a_server_that_fails_to_start_raises(serving: Serving) -> None:
    with pytest.raises(RuntimeError, match="ended while starting"), serving("_scripted_nothing", 0.0):
        pass


def completion(gateway: Gateway, model: str) -> Completion:
    plan = ReadingPlan(model=model, max_tokens=16)
    prompt = build_prompt([ContextItem("nothing")], "What?", NOW, Asker("owner"), plan, count_by_bytes)
    client = ReaderClient(gateway.base_url)
    token = gateway.grant(CallContext(phase="floor"))
    *_, last = client.stream(prompt, plan, token, 30.0)
    gateway.revoke(token)
    client.close()
    assert isinstance(last, Completion)
    return last
