"""Builds the response format of chat completions (OpenAI API) and parses a whole reply of any such server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memarena_answering.servers.normal_form import Reading
from memarena_answering.servers.replies import UpstreamError, one_line

_SERVER = 500
_FIRST_ERROR, _LAST_ERROR = 400, 599


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The first choice of a reply. Token counts are None if the server does not report them."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    tool_calls: tuple[Mapping[str, Any], ...] = ()


def schema_format(name: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Return the ``response_format`` that asks for JSON of a schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": dict(schema)}}


def read_chat(raw: bytes) -> ChatReply:
    """Parse a reply of status 200.

    Raises :class:`UpstreamError` for an error in it (cause ``reported``, with its code as an HTTP status), and if it is
    not a chat completion.
    """
    reading = Reading(raw, "something")
    body = reading.body
    listed = body.get("choices")
    first = listed[0] if isinstance(listed, list) and listed else None
    if error := body.get("error") or (first.get("error") if isinstance(first, dict) else None):
        raise _reported(error)
    choices = reading.choices("message")
    message = choices[0].get("message") if choices else None
    if not isinstance(message, dict):
        raise UpstreamError(
            f"the server's reply is no chat completion: {one_line(raw[:200].decode('utf-8', 'replace'))}"
        )
    usage = reading.usage() or {}
    calls = message.get("tool_calls")
    return ChatReply(
        text=message.get("content") or "",
        finish_reason=choices[0].get("finish_reason") or "",
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens"),
        tool_calls=tuple(call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else (),
    )


def _reported(error: object) -> UpstreamError:
    """Return the error that a server sent in a reply of status 200.

    Gateways do so when the model's own host fails after they have begun to answer: next to the choices or within one
    (https://openrouter.ai/docs/api/reference/errors-and-debugging). Without a code it is an error of the server.
    """
    code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
    try:
        status = int(code) if isinstance(code, int | str) else _SERVER
    except ValueError:
        status = _SERVER
    return UpstreamError(
        one_line(str(message or error), 200),
        cause="reported",
        code=status if _FIRST_ERROR <= status <= _LAST_ERROR else _SERVER,
    )
