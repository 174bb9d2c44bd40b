"""Chat calls of a memory in Ingest and Search: what was said comes back whole, a model that fails is no empty reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc
import pytest
from memarena_backend import (
    Call,
    CallError,
    Endpoint,
    Model,
    ModelAccess,
    ModelClient,
    ModelRole,
    PromptRefusedError,
    ToolCall,
    extractor_of,
)


@contextmanager
def _server(status: int, body: bytes) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            received.append({"path": self.path, "token": self.headers["Authorization"], **sent})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", received
        finally:
            server.shutdown()
            thread.join()


def _reply(message: dict[str, object], **more: object) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **more}).encode()


def test_a_reply_comes_back_with_its_tokens_and_the_call_s_token_is_sent() -> None:
    body = _reply({"content": "tea"}, usage={"prompt_tokens": 7, "completion_tokens": 1})
    with _server(200, body) as (url, received):
        client = ModelClient()
        chat = client.chat(
            Endpoint(url, "small", "secret"),
            [{"role": "user", "content": "what?"}],
            Call.internal(),
            max_tokens=16,
            response_format={"type": "json_object"},
        )
        client.close()
    assert (chat.text, chat.finish_reason, chat.prompt_tokens, chat.completion_tokens) == ("tea", "stop", 7, 1)
    (sent,) = received
    assert (sent["path"], sent["token"]) == ("/v1/chat/completions", "Bearer secret")
    assert (sent["model"], sent["max_tokens"], sent["response_format"]) == ("small", 16, {"type": "json_object"})
    assert "tools" not in sent


def test_tool_calls_come_back_as_they_were_written() -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "keep", "arguments": '{"text": "te'}}
    with _server(200, _reply({"content": None, "tool_calls": [made]})) as (url, _):
        chat = ModelClient().chat(Endpoint(url, "small"), [], Call.internal(), max_tokens=1)
    assert chat.text == ""
    assert chat.tool_calls == (ToolCall("keep", '{"text": "te', "c1"),)


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b"{}"), (200, b"{}"), (200, b'{"choices": []}'), (200, b"no json"), (401, b'{"error": {"message": "no"}}')],
)
def test_a_model_that_fails_is_unavailable_and_asked_once(status: int, body: bytes) -> None:
    with _server(status, body) as (url, received), pytest.raises(CallError) as raised:
        ModelClient().chat(Endpoint(url, "small"), [], Call.internal(), max_tokens=1)
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE
    assert len(received) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_prompt_that_is_not_taken_is_told_apart(status: int) -> None:
    with (
        _server(status, b'{"error": {"message": "too long"}}') as (url, _),
        pytest.raises(PromptRefusedError) as raised,
    ):
        ModelClient().chat(Endpoint(url, "small"), [], Call.internal(), max_tokens=1)
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE
    assert "too long" in raised.value.description


def test_facts_are_extracted_by_the_model_for_it_else_by_the_reader() -> None:
    reader, extractor = (Model(role.value, role, 0, False, False) for role in (ModelRole.READER, ModelRole.EXTRACTOR))
    for models, expected in (((reader, extractor), "extractor"), ((reader,), "reader")):
        found = extractor_of(ModelAccess("http://127.0.0.1:1/v1", "t", models))
        assert found is not None and found.model == expected
    assert extractor_of(None) is None
