"""Tests whose fault a failed call is: the model server's, the caller's, or the request's."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from memarena.execution.cells.context import hung
from memarena.gateway import MAX_BODY_BYTES, CallContext, Gateway, GatewayError, Upstream
from memarena.gateway.refusals import read_refusal
from memarena.gateway.types import Role
from memarena.log.records import GatewayCall
from pydantic import JsonValue

from tests.support.model_script import DONE, Event, Fault, Script, chunk, usage
from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from tests.gateway.conftest import Harness

    Make = Callable[..., Harness]


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Return whether a condition becomes true within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def open_chat(
    harness: Harness, token: str, until: bytes = b'"content": "{'
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """Start a streamed chat and read it as far as ``until``, by default the first token."""
    connection = http.client.HTTPConnection("127.0.0.1", harness.port, timeout=10)
    body = json.dumps({"model": harness.reader.model, "messages": [{"role": "user", "content": "?"}], "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {token}"})
    reply = connection.getresponse()
    while until not in reply.readline():
        pass
    return connection, reply


# ------------------------------------------------------------------ the server's fault


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [500, 503, 401, 403, 404, 429])
def test_errors_that_no_caller_can_cause_are_the_servers_fault(harness: Harness, status: int, stream: bool) -> None:
    harness.reader.script = Script(status=status, message="out of order")
    reply, record = harness.one_chat(stream=stream)
    assert reply.status == record.status == 502
    assert reply.json()["error"]["code"] == "upstream_failed"
    assert "out of order" in reply.json()["error"]["message"]
    assert record.upstream_failed
    assert str(status) in record.error


@pytest.mark.parametrize(
    ("message", "window", "more", "ours"),
    [
        ("System role not supported", 0, {}, True),
        ("Unsupported parameter: 'seed'", 0, {"seed": 1}, True),
        ("maximum context length is 2048 tokens, you requested 2100", 16_384, {}, True),
        ("maximum context length is 16384 tokens, you requested 20000", 16_384, {}, False),
        ("the prompt is too long", 16_384, {"tools": []}, True),
        ("the prompt is too long", 16_384, {"max_tokens": 16_384}, False),
        ("tools are not supported", 16_384, {"tools": []}, False),
        ("the temperature is too high", 16_384, {"temperature": 50}, False),
        ("content must be a string", 0, {"messages": [{"role": "user", "content": 5}]}, False),
        ("bad text", 0, {"messages": [{"role": "user", "content": "\ud800"}]}, False),
        ("max_tokens must be at least 1", 16_384, {"max_tokens": 0}, False),
    ],
)
def test_a_refusal_is_the_servers_fault_if_every_reader_must_accept_the_request(
    make_harness: Make, message: str, window: int, more: dict[str, object], ours: bool
) -> None:
    reader = ModelServer(Script(status=400, message=message), window_tokens=window)
    reply, record = make_harness(reader).one_chat(**more)
    assert reply.status == record.status == 400
    assert reply.json()["error"]["message"] == message
    assert (record.upstream_failed, message in record.error) == (ours, True)


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429, 500, 503])
@pytest.mark.parametrize(
    ("role", "body"), [("embedder", {"input": ["a", "b"]}), ("reranker", {"query": "a", "documents": ["b"]})]
)
def test_an_embedder_or_reranker_that_refuses_plain_texts_is_at_fault(
    make_harness: Make, role: Role, body: dict[str, object], status: int
) -> None:
    reader = ModelServer(Script(status=status))
    harness = make_harness(reader, upstreams=[reader.upstream(role=role)])
    route = "/v1/embeddings" if role == "embedder" else "/v1/rerank"
    for more, ours in (({}, True), ({"dimensions": 5}, status not in {400, 422})):
        token = harness.gateway.grant(CallContext("search", "cell", "instance", "ego", 3))
        harness.call(route, {"model": reader.model, **body, **more}, token)
        (record,) = harness.gateway.revoke(token)
        assert (record.upstream_failed, "as scripted" in record.error) == (ours, True), record


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("max_tokens must be at least 1", "other"),
        ("temperature must be a number", "other"),
        ("Unsupported parameter: temperature", "parameter"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "parameter"),
        ("the maximum for this model is 4096 tokens", "context"),
    ],
)
def test_a_refusal_is_classified_by_its_message_and_not_by_its_type(words: str, kind: str) -> None:
    body: JsonValue = {"error": {"message": words, "type": "invalid_request_error"}}
    assert read_refusal(400, body, words).kind == kind


@pytest.mark.parametrize("stream", [False, True])
def test_an_unreachable_server_is_at_fault(harness: Harness, stream: bool) -> None:
    harness.reader.stop()
    reply, record = harness.one_chat(stream=stream)
    assert reply.status == record.status == 502
    assert record.upstream_failed
    assert record.error.startswith("the server failed: ")
    assert (record.first_content_ns, record.prompt_tokens) == (None, None)


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_hangs_up_before_its_reply_is_at_fault(harness: Harness, stream: bool) -> None:
    harness.reader.script = Script(fault="disconnect")
    reply, record = harness.one_chat(stream=stream)
    assert reply.status == record.status == 502
    assert record.upstream_failed


def test_a_call_that_times_out_in_the_queue_counts_as_waiting_for_the_server(make_harness: Make) -> None:
    slow = make_harness(ModelServer(Script(delay_s=30)))
    harness = make_harness(slow.reader, upstreams=[replace(slow.reader.upstream(), concurrency=1)])
    token = harness.gateway.grant(CallContext("answer"))
    first, second = (http.client.HTTPConnection("127.0.0.1", harness.port, timeout=10) for _ in range(2))
    body = json.dumps({"model": harness.reader.model, "messages": [{"role": "user", "content": "?"}], "stream": True})
    first.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {token}"})
    assert eventually(lambda: len(slow.reader.received) == 1)
    second.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {token}"})
    assert eventually(lambda: len(harness.gateway._open) == 2)
    second.close()
    assert eventually(lambda: len(harness.records) == 1)
    (record,) = harness.records
    assert hung([record], record.started_mono_ns, time.monotonic_ns()) is record
    first.close()


def test_a_server_that_exceeds_the_timeout_is_at_fault(make_harness: Make) -> None:
    harness = make_harness(upstream_timeout_s=0.2)
    harness.reader.script = Script(delay_s=30)
    reply, record = harness.one_chat(stream=True)
    # The scripted server sends headers only with the first token, so nothing has reached the caller yet.
    assert reply.status == record.status == 504
    assert record.upstream_failed


def test_a_reply_that_is_not_json_is_the_servers_fault(harness: Harness) -> None:
    harness.reader.script = Script(fault="malformed")
    reply, record = harness.one_chat()
    assert reply.status == record.status == 502
    assert record.upstream_failed


@pytest.mark.parametrize("fault", ["malformed", "error_event", "break", "cut", "stall"])
def test_a_stream_that_breaks_ends_with_an_error_event(make_harness: Make, fault: Fault) -> None:
    harness = make_harness(upstream_timeout_s=0.3)
    harness.reader.script = Script(tokens=("half", " done"), fault=fault, message="scripted trouble")
    reply, record = harness.one_chat(stream=True)
    assert reply.status == record.status == 200, "the status was sent before the stream broke"
    assert record.upstream_failed
    assert record.error
    assert reply.events()[-1]["error"]["code"] == "upstream_failed"
    assert "[DONE]" not in reply.events()
    assert record.output == "half"
    assert record.done_ns is None
    if fault == "error_event":
        assert "scripted trouble" in record.error


def test_a_server_that_does_not_stream_on_request_is_at_fault(make_harness: Make) -> None:
    """A complete JSON reply to a streaming request would make TTFT meaningless."""

    harness = make_harness(ModelServer(Script(body={"choices": []})))
    reply, record = harness.one_chat(stream=True)
    assert reply.status == 502
    assert record.upstream_failed
    assert "application/json" in record.error


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_without_a_choice_is_the_servers_fault(make_harness: Make, stream: bool) -> None:
    nothing = Script(events=[DONE]) if stream else Script(body={"choices": []})
    reply, record = make_harness(ModelServer(nothing)).one_chat(stream=stream)
    assert reply.status == record.status == 502
    assert record.upstream_failed


# ------------------------------------------------------------------ the caller goes away


@pytest.mark.parametrize("fault", ["stall", "endless"])
def test_a_caller_that_disconnects_is_recorded_and_the_servers_connection_is_closed(
    harness: Harness, fault: Fault
) -> None:
    harness.reader.script = Script(fault=fault)
    token = harness.gateway.grant(CallContext("answer"))
    connection, reply = open_chat(harness, token)
    reply.close()
    connection.close()
    harness.recorded(1)
    (record,) = harness.gateway.revoke(token)
    assert record.status == 200
    assert record.error == "the caller went away"
    assert not record.upstream_failed
    assert record.first_content_ns is not None
    assert record.output.startswith('{"answer": "')


def test_a_caller_that_disconnects_before_the_first_token_gives_a_499(harness: Harness) -> None:
    harness.reader.script = Script(delay_s=30)
    token = harness.gateway.grant(CallContext("answer"))
    connection = socket.create_connection(("127.0.0.1", harness.port))
    body = json.dumps({"model": harness.reader.model, "messages": [{"role": "user", "content": "?"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert eventually(lambda: len(harness.reader.received) == 1)
    connection.close()
    harness.recorded(1)
    (record,) = harness.gateway.revoke(token)
    assert (record.status, record.error, record.upstream_failed) == (499, "the caller went away", False)


def test_a_caller_that_disconnects_after_the_last_event_has_a_complete_reply(
    make_harness: Make, tmp_path: Path
) -> None:
    """Clients close on [DONE], and a server may end the stream later. The cache has the reply by then."""
    hung_up = threading.Event()

    def end() -> bytes:
        hung_up.wait(10)
        time.sleep(0.2)
        raise ConnectionResetError

    events: list[Event] = [chunk({"content": "yes"}, "stop"), usage(3, 1), DONE, end]
    harness = make_harness(ModelServer(Script(events=events)), cache_dir=tmp_path)
    token = harness.gateway.grant(CallContext("answer"))
    connection, reply = open_chat(harness, token, until=b"[DONE]")
    reply.close()
    connection.close()
    hung_up.set()
    harness.recorded(1)
    (record,) = harness.gateway.revoke(token)
    again, cached = harness.one_chat(messages=[{"role": "user", "content": "?"}], stream=True)
    assert (cached.from_cache, again.text()) == (True, "yes")
    assert (record.status, record.error, record.output) == (200, "", "yes")
    assert (record.prompt_tokens, record.completion_tokens) == (3, 1)
    assert record.done_ns is not None
    assert record.last_content_ns is not None
    assert record.done_ns >= record.last_content_ns


# ------------------------------------------------------------------ refused


def refusal(harness: Harness, token: str | None, **changes: object) -> GatewayCall:
    count_before = len(harness.records)
    route = str(changes.pop("route", "/v1/chat/completions"))
    method = str(changes.pop("method", "POST"))
    body = changes.pop("body", {"model": harness.reader.model, "messages": [], **changes})
    reply = harness.call(route, body, token, method)
    record = harness.recorded(count_before + 1)
    assert reply.status == record.status
    assert reply.json()["error"]["message"] == record.error
    assert reply.json()["error"]["type"] == "invalid_request_error"
    return record


def test_calls_that_the_gateway_refuses_are_recorded(harness: Harness) -> None:
    token = harness.gateway.grant(CallContext("ingest", "cell", ego="ana", day=2))
    cases: list[tuple[int, str | None, dict[str, object]]] = [
        (401, None, {}),
        (401, "never-granted", {}),
        (404, token, {"route": "/v1/audio/speech"}),
        (404, token, {"route": "/metrics"}),
        (405, token, {"method": "PUT"}),
        (404, token, {"model": "gpt-unknown"}),
        (404, token, {"model": None}),
        (404, token, {"route": "/v1/embeddings"}),
        (400, token, {"body": b"{no json"}),
        (400, token, {"body": b"[1]"}),
        (400, token, {"body": b"\xff"}),
        (400, token, {"route": "/v1/tokenize", "texts": "x"}),
        (400, token, {"route": "/v1/tokenize", "texts": ["x", 1]}),
    ]
    for status, call_token, changes in cases:
        record = refusal(harness, call_token, **changes)
        assert (record.status, record.phase) == (status, "refused"), changes
        assert record.cell_id == ("cell" if call_token == token else None)
        assert not record.upstream_failed
        assert (record.received_to_forwarded_ns, record.done_ns) == (None, None)
    assert harness.reader.received == [], "nothing that was refused reached the model"
    assert len(harness.gateway.revoke(token)) == len(cases) - 2


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_above_the_limit_is_refused_and_one_at_the_limit_passes(harness: Harness, announced: bool) -> None:
    token = harness.gateway.grant(CallContext("ingest"))
    empty = {"model": harness.reader.model, "messages": [{"role": "user", "content": ""}]}
    filler = MAX_BODY_BYTES - len(json.dumps(empty))

    def send(size: int) -> int:
        body = json.dumps({**empty, "messages": [{"role": "user", "content": "x" * size}]}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", harness.port, timeout=20)
        data: object = body if announced else iter([body[i : i + 65536] for i in range(0, len(body), 65536)])
        connection.request("POST", "/v1/chat/completions", data, {"Authorization": f"Bearer {token}"})  # type: ignore[arg-type]
        status = connection.getresponse().status
        connection.close()
        return status

    assert send(filler) == 200
    assert send(filler + 1) == 413
    calls = harness.gateway.revoke(token)
    assert [(call.status, call.phase) for call in calls] == [(200, "ingest"), (413, "refused")]


def test_a_caller_that_expects_100_continue_gets_it(harness: Harness) -> None:
    token = harness.gateway.grant(CallContext("ingest"))
    body = json.dumps({"model": harness.reader.model, "messages": [{"role": "user", "content": "?"}]}).encode()
    with socket.create_connection(("127.0.0.1", harness.port), timeout=30) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        headers = f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall((head + headers).encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100 Continue")
        connection.sendall(body)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    harness.gateway.revoke(token)


# ------------------------------------------------------------------ the gateway itself


def test_a_port_in_use_gives_a_one_line_error(harness: Harness) -> None:
    second = Gateway([], lambda call: None, port=harness.port)
    with pytest.raises(GatewayError, match=rf"^gateway: cannot listen on 127\.0\.0\.1:{harness.port}: .*in use$"):
        second.start()
    second.stop()


def test_two_models_with_the_same_name_are_refused() -> None:
    upstream = Upstream("m", "http://127.0.0.1:1/v1", "m")
    with pytest.raises(GatewayError, match="same name"):
        Gateway([upstream, upstream], lambda call: None)


def test_a_failing_log_stops_the_run_and_not_the_caller(make_harness: Make) -> None:
    class FullError(Exception):
        pass

    def full(call: GatewayCall) -> None:
        raise FullError("the disk is full")

    harness = make_harness(record=full)
    token = harness.gateway.grant(CallContext("answer"))
    assert harness.chat(token).status == 200
    with pytest.raises(FullError):
        harness.gateway.revoke(token)
    with pytest.raises(FullError):
        harness.gateway.grant(CallContext("answer"))
    with pytest.raises(FullError):
        harness.gateway.stop()
    harness.gateway._failure = None  # so that the fixture can stop it


def test_stop_ends_and_records_pending_calls(harness: Harness) -> None:
    harness.reader.script = Script(fault="stall")
    token = harness.gateway.grant(CallContext("answer"))
    connection, _ = open_chat(harness, token)
    harness.gateway.stop()
    harness.gateway.stop()
    (record,) = harness.records
    assert record.error == "cut off: the gateway stopped"
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", harness.port))


def test_a_gateway_listens_on_loopback_only_by_default(harness: Harness) -> None:
    assert harness.gateway.base_url == f"http://127.0.0.1:{harness.port}/v1"


def test_the_null_reader_is_recorded_too(make_harness: Make) -> None:
    harness = make_harness(ModelServer(Script(tokens=("ok",))))
    _, record = harness.one_chat(stream=True)
    assert record.output == "ok"
