"""Interprets a model server's refusal of a request: its cause, whose fault it is, and what a user can do.

Servers word the same cause in many ways. Whose fault it is decides the record of the call: a fault of the server is an
infrastructure failure, a wrong request is the caller's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memarena_answering import count_by_bytes
from pydantic import JsonValue

from memarena.gateway.types import Upstream

Kind = Literal["context", "system_role", "parameter", "model", "key", "load", "redirect", "other"]

_PLAIN_KEYS = frozenset({"model", "messages", "max_tokens", "temperature", "seed", "stream", "stream_options"})
"""Fields of requests for questions, and of the probe before the first question, which any reader must accept."""
_PLAIN_TEMPLATE_KEYS = frozenset({"enable_thinking"})
_PLAIN_LISTS: Mapping[str, frozenset[str]] = {
    "input": frozenset({"model", "input", "encoding_format"}),
    "documents": frozenset({"model", "query", "documents", "top_n"}),
}
"""Fields that any embedder (``input``) and any reranker (``documents``) must accept, by the field with the texts."""
_MAX_TEMPERATURE = 2.0  # the highest temperature of the OpenAI API
_PARAMETERS = ("max_tokens", "temperature", "seed", "stream_options", "chat_template_kwargs", "stream", "cache_prompt")
_CONTEXT = re.compile(
    r"context[ _-]?(?:length|size|window)|n_ctx|exceed_context"
    r"|(?:prompt|input|request|messages?) (?:is|are) too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|\b(?:maximum|max)\b[^.]{0,40}tokens|longer than[^.]{0,40}(?:context|tokens)"
    r"|entity too large|payload too large",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"system[ _-]?(?:role|message|prompt|instruction)|developer instruction|roles must alternate", re.I
)
_WINDOW = re.compile(
    r"(?:context[ _-]?(?:length|size|window)|maximum (?:number of )?tokens|n_ctx|limit)\D{0,40}?(\d{2,8})"
    r"|(\d{2,8}) (?:tokens? )?maximum",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecognized|unexpected|extra|invalid|not permitted|deprecat", re.I
)
_PAYLOAD_TOO_LARGE = 413  # HTTP: the payload is too large
_BY_STATUS: Mapping[int, Kind] = {401: "key", 403: "key", 404: "model", 429: "load"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The cause of a server's refusal."""

    kind: Kind
    window_tokens: int | None = None
    """The context window that the server states in its refusal; None if it does not."""
    parameter: str = ""
    """The field of the request that the server rejects, if it names one that the harness sends."""

    def remedy(self, upstream: Upstream) -> str:
        """Return what a user can do about it; empty if nothing is known. Only readers have flags for it."""
        if upstream.role != "reader":
            return ""
        window = f" {self.window_tokens}" if self.window_tokens else " TOKENS"
        return {
            "context": f"state the window with --reader-window{window}, or serve the model with a longer one",
            "system_role": "--no-system-role puts the instructions into the user's message",
            "parameter": f"--reader-drop {self.parameter} leaves it out, --reader-param {self.parameter}=JSON sets it",
            "model": "--model names the model of the server",
            "key": "MEMARENA_READER_API_KEY holds the key of the server",
            "load": "--reader-requests-per-minute N stays below a limit, --reader-patience SECONDS waits longer",
            "redirect": "state the address that it names as the reader's",
        }.get(self.kind, "")


def read_refusal(status: int, body: JsonValue, words: str) -> Refusal:
    """Return the cause that an error reply states. ``words`` is its message on one line."""
    error = body.get("error") if isinstance(body, dict) else None
    fields: Mapping[str, JsonValue] = error if isinstance(error, dict) else body if isinstance(body, dict) else {}
    coded = f"{words} {fields.get('code') or ''}"
    text = f"{coded} {fields.get('type') or ''}"
    # The order matters: the message of a rate limit (429) may speak of tokens like that of a prompt that is too long.
    if (kind := _BY_STATUS.get(status)) is not None:
        return Refusal(kind)
    if status < 400:
        return Refusal("redirect")
    if "model_not_found" in text:
        return Refusal("model")
    if status == _PAYLOAD_TOO_LARGE or _CONTEXT.search(text):
        return Refusal("context", _stated_window(fields, words))
    if _SYSTEM.search(text):
        return Refusal("system_role")
    named = fields.get("param")
    parameters = [key for key in _PARAMETERS if key == named or (_UNSUPPORTED.search(coded) and _names(key, text))]
    return Refusal("parameter", parameter=parameters[0]) if parameters else Refusal("other")


def is_servers_fault(refusal: Refusal, body: Mapping[str, JsonValue], upstream: Upstream) -> bool:
    """Whether a refused request is the server's failure and not the caller's fault.

    It is if the request has the plain form that every reader must accept, or if the prompt is too long for the
    server but within the window that was stated to the backend (SPEC.md MOD-10). ``body`` is the caller's request.
    """
    if refusal.kind == "context":
        window = upstream.context_window_tokens
        if refusal.window_tokens is not None and window:
            return refusal.window_tokens < window
        return not window or _estimated_tokens(body) <= window
    if refusal.kind == "parameter" and refusal.parameter not in body:
        return True
    return is_plain(body)


def is_plain(body: Mapping[str, JsonValue]) -> bool:
    """Whether a request has only what every server of its kind must accept: a chat, texts to embed or to rank."""
    for key, plain in _PLAIN_LISTS.items():
        if (texts := body.get(key)) is not None:
            listed = texts if isinstance(texts, list) else [texts]
            return set(body) <= plain and bool(listed) and all(map(_plain_text, [*listed, body.get("query", "")]))
    template = body.get("chat_template_kwargs", {})
    messages = body.get("messages")
    if not isinstance(template, dict) or not set(template) <= _PLAIN_TEMPLATE_KEYS:
        return False
    if not set(body) <= _PLAIN_KEYS | {"chat_template_kwargs"} or not isinstance(messages, list) or not messages:
        return False
    return all(map(_plain_message, messages)) and _plain_sampling(body)


def _plain_message(message: JsonValue) -> bool:
    if not isinstance(message, dict) or set(message) != {"role", "content"}:
        return False
    content = message["content"]
    return message["role"] in {"system", "user", "assistant"} and _plain_text(content)


def _plain_text(text: JsonValue) -> bool:
    return isinstance(text, str) and not any("\ud800" <= character <= "\udfff" for character in text)


def _plain_sampling(body: Mapping[str, JsonValue]) -> bool:
    most, temperature, seed = body.get("max_tokens", 1), body.get("temperature", 0.0), body.get("seed", 0)
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (most, seed))
    if not whole or isinstance(temperature, bool) or not isinstance(temperature, int | float):
        return False
    return isinstance(most, int) and most >= 1 and 0 <= temperature <= _MAX_TEMPERATURE


def _estimated_tokens(body: Mapping[str, JsonValue]) -> int:
    """Return the tokens of prompt and reply, estimated as UTF-8 bytes / 4."""
    messages = next((body[key] for key in ("messages", "prompt", "input", "documents") if key in body), None)
    texts = [str(message.get("content")) if isinstance(message, dict) else str(message) for message in
             (messages if isinstance(messages, list) else [messages])]  # fmt: skip
    most = body.get("max_tokens")
    return sum(count_by_bytes(texts)) + (most if isinstance(most, int) else 0)


def _stated_window(fields: Mapping[str, JsonValue], words: str) -> int | None:
    stated = fields.get("n_ctx")
    if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0:
        return stated
    match = _WINDOW.search(words)
    return int(match[1] or match[2]) if match else None


def _names(key: str, text: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(key)}(?![\w])", text) is not None
