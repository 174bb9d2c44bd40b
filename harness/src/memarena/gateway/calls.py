"""Tracks one model call from the arrival of its request to its record: clock readings, tokens, outcome."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Literal

from memarena_answering.servers.counts import count, milliseconds
from memarena_answering.servers.replies import UpstreamError
from pydantic import JsonValue

from memarena.gateway.types import CallContext
from memarena.log.records import GatewayCall

_WORD_CHARS = 64  # of a finish reason in the record
CALLER_GONE = 499
"""Status in the record if the caller hung up before it got a status."""


class RefusedError(Exception):
    """The gateway itself refuses a call. ``code`` is that of the OpenAI error object."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class CallerGoneError(Exception):
    """The caller closed its connection before it got the whole reply."""


def error_body(message: str, code: str) -> dict[str, JsonValue]:
    """Return an OpenAI-style error object."""
    kind = "invalid_request_error" if code != "upstream_failed" else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class OpenCall:
    """A call under way. Offsets are nanoseconds since the request was forwarded upstream."""

    def __init__(self, call_id: str, route: str) -> None:
        self.call_id = call_id
        self.route = route
        self.task = asyncio.current_task()
        self.received_ns = time.monotonic_ns()
        self.forwarded_ns: int | None = None
        self.phase: Literal["after_return", "refused"] | None = None
        """Phase of the call if it is not that of its token; else None."""
        self.context: CallContext | None = None
        self.names: Mapping[str, str] = {}
        """Aliases of models that are valid for this call's token, each with the model's name."""
        self.model = ""
        self.stream = False
        self.status = 0
        """Status sent to the caller; 0 until there is one."""
        self.error = ""
        self.refusal = ""
        self.upstream_code = ""
        self.upstream_failed = False
        self.from_cache = False
        self.abort_reason: str | None = None
        """Why the gateway cancelled the call; None if it did not."""
        self.first_byte_ns: int | None = None
        self.first_content_ns: int | None = None
        self.last_content_ns: int | None = None
        self.first_reasoning_ns: int | None = None
        self.done_ns: int | None = None
        """Offset of the last event of a stream, or of the end of any other reply."""
        self.delivered = False
        """Whether the caller was sent the last event, after which it may hang up before the server does."""
        self.prompt_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.finish_reason = ""
        self.refused_to_answer = False
        """Whether the server sent a refusal instead of text."""
        self.has_waited = False
        self.waited_ns = 0
        """Nanoseconds of waiting before the answered request: for a free slot, the rate limit, a busy server."""
        self.server_prompt_ms: float | None = None
        self.server_predicted_ms: float | None = None
        self.prompt: JsonValue = None
        self.output: str = ""
        self.output_sha256: str = ""
        self.reasoning: str = ""

    def forwarded(self, ready_ns: int | None = None) -> None:
        """Note that the request is sent upstream now. ``ready_ns``: when it was ready, if it may have waited since."""
        self.forwarded_ns = time.monotonic_ns()
        if self.has_waited and ready_ns is not None:
            self.waited_ns = self.forwarded_ns - ready_ns

    def since_forwarded(self, at_ns: int | None = None) -> int | None:
        """Return the offset of a time (None: now) in ns since forwarding; None if nothing was forwarded."""
        if self.forwarded_ns is None:
            return None
        return (time.monotonic_ns() if at_ns is None else at_ns) - self.forwarded_ns

    def server_refused(self, message: str) -> None:
        """Note that the server refused a request that it must accept, which is a failure of the server."""
        self.upstream_failed = True
        self.error = message

    def refuse(self, error: RefusedError) -> None:
        """Note that the gateway itself refused the call."""
        self.phase = self.phase or "refused"
        self.status = error.status
        self.error = error.message
        self.refusal = error.code

    def fail(self, error: UpstreamError) -> None:
        """Note that the server failed. A status that was already sent stays."""
        self.upstream_failed = True
        self.status = self.status or error.status
        self.error = error.message

    def abandon(self) -> None:
        """Note that the call was cancelled, by the caller's hanging up or by the gateway."""
        if self.delivered:
            return
        self.status = self.status or CALLER_GONE
        self.error = self.error or self.abort_reason or "the caller went away"

    def take_usage(self, usage: JsonValue) -> None:
        """Note the token counts of an OpenAI ``usage`` object; a missing count stays unknown."""
        if not isinstance(usage, dict):
            return
        self.prompt_tokens = _known(count(usage.get("prompt_tokens")), self.prompt_tokens)
        self.completion_tokens = _known(count(usage.get("completion_tokens")), self.completion_tokens)
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            self.cached_tokens = _known(count(details.get("cached_tokens")), self.cached_tokens)

    def take_timings(self, timings: JsonValue) -> None:
        """Note the times in llama.cpp's ``timings`` object, in milliseconds."""
        if isinstance(timings, dict):
            self.server_prompt_ms = milliseconds(timings.get("prompt_ms"))
            self.server_predicted_ms = milliseconds(timings.get("predicted_ms"))
            if self.cached_tokens is None:
                self.cached_tokens = count(timings.get("cache_n"))

    def record(self, *, keep_texts: bool) -> GatewayCall:
        """Return the record of the call."""
        prompt = "" if self.prompt is None else json.dumps(self.prompt, ensure_ascii=False, separators=(",", ":"))
        context = self.context
        received = None if self.forwarded_ns is None else self.forwarded_ns - self.received_ns - self.waited_ns
        return GatewayCall(
            call_id=self.call_id,
            cell_id=context.cell_id if context else None,
            phase=self.phase or (context.phase if context else "refused"),
            inferred=context.inferred if context else False,
            instance_id=context.instance_id if context else None,
            ego=context.ego if context else None,
            day=context.day if context else None,
            route=self.route,
            model=self.model,
            stream=self.stream,
            status=self.status,
            error=self.error,
            refusal=self.refusal,
            upstream_code=self.upstream_code,
            upstream_failed=self.upstream_failed,
            from_cache=self.from_cache,
            started_mono_ns=self.received_ns,
            received_to_forwarded_ns=received,
            waited_ns=self.waited_ns,
            first_byte_ns=self.first_byte_ns,
            first_content_ns=self.first_content_ns,
            last_content_ns=self.last_content_ns,
            first_reasoning_ns=self.first_reasoning_ns,
            done_ns=self.done_ns,
            prompt_tokens=self.prompt_tokens,
            prompt_words=_words(self.prompt) if self.route == "/v1/chat/completions" else None,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            finish_reason="refusal" if self.refused_to_answer and not self.output else self.finish_reason[:_WORD_CHARS],
            server_prompt_ms=self.server_prompt_ms,
            server_predicted_ms=self.server_predicted_ms,
            prompt_sha256=_sha256(prompt) if prompt else "",
            output_sha256=self.output_sha256 or (_sha256(self.output) if self.output else ""),
            prompt=_storable(prompt) if keep_texts else "",
            output=_storable(self.output) if keep_texts else "",
            reasoning=_storable(self.reasoning) if keep_texts else "",
        )


def _storable(text: str) -> str:
    """Return the text with lone surrogates replaced, which JSON can express but UTF-8 cannot."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _words(messages: JsonValue) -> int | None:
    """Return the number of words in the messages of a chat; None if one is no text."""
    total = 0
    for message in messages if isinstance(messages, list) else [None]:
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            return None
        total += len(content.split())
    return total


def _known(value: int | None, otherwise: int | None) -> int | None:
    return otherwise if value is None else value
