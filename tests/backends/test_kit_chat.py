"""Tests a memory's chat calls in Ingest and Search: complete replies, and an error if the model fails."""

from __future__ import annotations

import json
from contextlib import closing

import grpc
import pytest
from memarena_backend import (
    Call,
    CallError,
    Chat,
    Endpoint,
    Model,
    ModelAccess,
    ModelClient,
    ModelRole,
    PromptRefusedError,
    ToolCall,
    extractor_of,
)

from tests.support.model_server import ModelServer


def _chat(server: ModelServer) -> Chat:
    with closing(ModelClient()) as client:
        return client.chat(Endpoint(server.base_url, "small"), [], Call.internal(), max_tokens=1)


def _reply(message: dict[str, object], **more: object) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **more}).encode()


def test_a_reply_comes_back_with_its_tokens_and_the_call_s_token_is_sent() -> None:
    body = _reply({"content": "tea"}, usage={"prompt_tokens": 7, "completion_tokens": 1})
    with ModelServer(lambda _: body) as server:
        client = ModelClient()
        chat = client.chat(
            Endpoint(server.base_url, "small", "secret"),
            [{"role": "user", "content": "what?"}],
            Call.internal(),
            max_tokens=16,
            response_format={"type": "json_object"},
        )
        client.close()
    assert (chat.text, chat.finish_reason, chat.prompt_tokens, chat.completion_tokens) == ("tea", "stop", 7, 1)
    (request,) = server.asked
    assert server.authorizations == ["Bearer secret"]
    assert (request["model"], request["max_tokens"], request["response_format"]) == (
        "small",
        16,
        {"type": "json_object"},
    )
    assert "tools" not in request


def test_tool_calls_are_returned_unchanged() -> None:
    tool_call = {"id": "c1", "type": "function", "function": {"name": "keep", "arguments": '{"text": "te'}}
    with ModelServer(lambda _: _reply({"content": None, "tool_calls": [tool_call]})) as server:
        chat = _chat(server)
    assert chat.text == ""
    assert chat.tool_calls == (ToolCall("keep", '{"text": "te', "c1"),)


@pytest.mark.parametrize("reply", [500, b"{}", b'{"choices": []}', b"no json", b'{"error": {"code": 500}}', 401, 302])
def test_a_failed_model_is_unavailable_and_not_retried(reply: bytes | int) -> None:
    with ModelServer(lambda _: reply) as server, pytest.raises(CallError) as raised:
        _chat(server)
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE
    assert not isinstance(raised.value, PromptRefusedError)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_prompt_is_distinguished_from_a_failure(status: int) -> None:
    with ModelServer(lambda _: status) as server, pytest.raises(PromptRefusedError, match="as scripted") as raised:
        _chat(server)
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE


def test_facts_are_extracted_by_the_model_for_it_else_by_the_reader() -> None:
    reader, extractor = (Model(role.value, role, 0, False, False) for role in (ModelRole.READER, ModelRole.EXTRACTOR))
    for models, expected in (((reader, extractor), "extractor"), ((reader,), "reader")):
        endpoint = extractor_of(ModelAccess("http://127.0.0.1:1/v1", "t", models))
        assert endpoint is not None and endpoint.model == expected
    assert extractor_of(None) is None
