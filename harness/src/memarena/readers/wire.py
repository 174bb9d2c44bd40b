"""Builds messages of the OpenAI wire format for the harness's servers: chunks, whole completions, token usage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from memarena_answering import Message, count_by_bytes
from pydantic import JsonValue

Finish = Literal["stop", "length"]
DONE = b"data: [DONE]\n\n"

_CHUNK_HEAD: dict[str, JsonValue] = {"id": "chatcmpl-memarena", "object": "chat.completion.chunk", "created": 0}


def sse(body: Mapping[str, JsonValue]) -> bytes:
    """Return a server-sent event."""
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def chat_chunk(model: str, delta: Mapping[str, JsonValue], finish: str | None = None) -> dict[str, JsonValue]:
    """Return a chunk of a streamed chat completion."""
    choice: dict[str, JsonValue] = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {**_CHUNK_HEAD, "model": model, "choices": [choice]}


def usage_chunk(model: str, usage: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the closing chunk with token counts."""
    return {**_CHUNK_HEAD, "model": model, "choices": [], "usage": dict(usage)}


def chat_completion(
    model: str, message: Mapping[str, JsonValue], finish: str, usage: Mapping[str, JsonValue] | None
) -> dict[str, JsonValue]:
    """Return a whole chat completion."""
    choice: dict[str, JsonValue] = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": finish,
    }
    body: dict[str, JsonValue] = {"id": "chatcmpl-memarena", "object": "chat.completion", "created": 0, "model": model}
    body["choices"] = [choice]
    if usage is not None:
        body["usage"] = dict(usage)
    return body


def token_usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int | None) -> dict[str, JsonValue]:
    """Return a usage object. With ``cached_tokens`` None it has the null that some servers send for zero."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": None if cached_tokens is None else {"cached_tokens": cached_tokens},
    }


def error(message: str, code: str) -> dict[str, JsonValue]:
    """Return an OpenAI-style error."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def model_list(model: str) -> dict[str, JsonValue]:
    """Return the reply to GET /v1/models."""
    return {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "memarena"}]}


def chat_messages(body: Mapping[str, JsonValue]) -> list[Message]:
    """Return the messages of a chat request, with text parts joined.

    Raises ValueError if there are no messages, or one has no text.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages: expected a list with at least one message")
    return [Message("system" if _role(message) == "system" else "user", _content(message)) for message in messages]


def _role(message: JsonValue) -> JsonValue:
    return message.get("role") if isinstance(message, dict) else None


def _content(message: JsonValue) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        raise ValueError("messages: expected every message to have a text content")
    return content


def bytes_tokens(texts: Sequence[str]) -> int:
    """Return the tokens of several texts together, counted as UTF-8 bytes / 4."""
    return sum(count_by_bytes(texts))
