"""Forwards a request to a model's server and the reply to the caller, and fills in the times of the call."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from memarena_answering.servers.normal_form import Reading
from memarena_answering.servers.replies import (
    MAX_ERROR_BYTES,
    MAX_REPLY_BYTES,
    MAX_VECTORS_BYTES,
    Reply,
    UpstreamError,
    authorization,
    check_coding,
    error_message,
    parse_json,
    too_long,
)
from memarena_answering.servers.sessions import bounded, upstream_error
from pydantic import JsonValue

from memarena.gateway.calls import CallerGoneError, OpenCall, error_body
from memarena.gateway.pacing import BUSY, Pace, pause, wait_s
from memarena.gateway.refusals import is_servers_fault, read_refusal
from memarena.gateway.streams import StreamWatch, reasoning_of
from memarena.gateway.types import Upstream
from memarena.log.base import PROMPT_NOT_UNDERSTOOD

_LARGE_BODY = 1 << 19  # bytes; a larger body is sent in parts, so that it does not block the event loop
_CODE_CHARS = 64
_OUR_FAULT = frozenset({401, 403, 404, 405, 408, 425, 429})
"""HTTP client errors that a caller cannot cause: they concern the server's key, address, route or load."""

_PROMPT_KEYS = {
    "/v1/chat/completions": "messages",
    "/v1/completions": "prompt",
    "/v1/embeddings": "input",
    "/v1/rerank": "documents",
}
_REPLY_KEYS = {"/v1/embeddings": "data", "/v1/rerank": "results"}
"""Key of the list that a reply must have, by route; ``choices`` for routes that generate."""


Keep = Callable[[str, bytes], None]
"""Takes content type and bytes of a whole reply, before the caller gets its end: the caller may hang up then, which
ends the handling of its call."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as sent upstream."""

    url: str
    body: bytes
    stream: bool
    hide_usage: bool
    """Whether the caller did not request the token counts that the gateway asks for in every stream."""
    max_tokens: int | None = None


def prepare(route: str, body: Mapping[str, JsonValue], upstream: Upstream) -> Outgoing:
    """Rewrite a caller's request for the model's server: model name, configured fields, usage in every stream."""
    sent: dict[str, JsonValue] = {**body, "model": upstream.upstream_model}
    stream = body.get("stream") is True
    usage_is_asked = True
    if route not in _REPLY_KEYS:
        for key, value in upstream.extra_body.items():
            own_value = sent.get(key)
            sent[key] = {**own_value, **value} if isinstance(own_value, dict) and isinstance(value, dict) else value
        if stream:
            options = body.get("stream_options")
            options = options if isinstance(options, dict) else {}
            usage_is_asked = options.get("include_usage") is True
            sent["stream_options"] = {**options, "include_usage": True}
        for key in upstream.drop:
            sent.pop(key, None)
    url = upstream.base_url.rstrip("/") + route.removeprefix("/v1")
    most = next((n for key in ("max_tokens", "max_completion_tokens") if isinstance(n := sent.get(key), int)), None)
    return Outgoing(url, json.dumps(sent, separators=(",", ":")).encode(), stream, not usage_is_asked, most)


def describe(call: OpenCall, route: str, body: Mapping[str, JsonValue]) -> None:
    """Note the content of the request in the call."""
    call.stream = body.get("stream") is True
    call.prompt = body.get(_PROMPT_KEYS[route])


class Forwarder:
    """Sends requests to the models' servers over persistent connections."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._paces: dict[str, Pace] = {}

    async def forward(
        self,
        request: web.BaseRequest,
        call: OpenCall,
        upstream: Upstream,
        outgoing: Outgoing,
        keep: Keep | None = None,
        *,
        body: Mapping[str, JsonValue],
    ) -> web.StreamResponse:
        """Send the request, pass the reply back and fill in the call. On return the caller has the whole reply.

        A complete reply of status 200 goes to ``keep`` first, when the call has all fields of its record.
        ``body`` is the caller's request, which decides whose fault a refusal is. A request to a busy server is retried
        when the server says; the call's clock starts with the answered request.

        Raises :class:`UpstreamError` if the server fails before anything was sent to the caller; a later failure
        becomes an error event at the end of the caller's stream. Errors of ``keep`` are passed on.
        """
        headers = {"Content-Type": "application/json", **authorization(upstream.api_key)}
        pace = self._paces.setdefault(upstream.model, Pace(upstream))
        # From here on the call waits for the server, even if the caller's time ends before its turn comes.
        call.forwarded()
        ready_ns = time.monotonic_ns()
        waited_s = 0.0
        async with pace.turn(call):
            for tries in itertools.count(1):
                await pace.minute(call)
                data = io.BytesIO(outgoing.body) if len(outgoing.body) > _LARGE_BODY else outgoing.body
                call.forwarded(ready_ns)
                async with self._session.post(outgoing.url, data=data, headers=headers, allow_redirects=False) as reply:
                    wait = None
                    if reply.status in BUSY:
                        wait = wait_s(reply.headers, tries, waited_s, upstream.patience_s)
                    if wait is None:
                        return await self._pass(request, call, upstream, outgoing, reply, keep, body)
                waited_s += wait
                await pause(call, wait)
        raise AssertionError("the loop ends with a reply")

    async def _pass(
        self,
        request: web.BaseRequest,
        call: OpenCall,
        upstream: Upstream,
        outgoing: Outgoing,
        reply: aiohttp.ClientResponse,
        keep: Keep | None,
        body: Mapping[str, JsonValue],
    ) -> web.StreamResponse:
        """Pass the server's reply on to the caller: an error, a stream or a whole reply."""
        check_coding(reply.headers)
        if reply.status >= 300:
            return await self._pass_error(request, call, upstream, reply, body)
        if outgoing.stream and reply.content_type == "text/event-stream":
            return await self._pass_stream(request, call, reply, keep, outgoing)
        if outgoing.stream:
            raise UpstreamError(await _no_stream(reply))
        return await self._pass_whole(request, call, reply, keep)

    async def _pass_error(
        self,
        request: web.BaseRequest,
        call: OpenCall,
        upstream: Upstream,
        reply: aiohttp.ClientResponse,
        sent: Mapping[str, JsonValue],
    ) -> web.StreamResponse:
        """Pass an error reply on, or raise UpstreamError if the server and not the caller is at fault."""
        raw = await bounded(reply, MAX_ERROR_BYTES, cut=True)
        body: JsonValue = parse_json(raw)
        if body is None:
            body = raw[:500].decode("utf-8", "replace")
        words = error_message(body)
        refusal = read_refusal(reply.status, body, words)
        remedy = refusal.remedy(upstream)
        if reply.status < 400:
            words = Reply(reply.status, reply.headers, b"").error_line()
        message = f"the server answered {reply.status}: {words}" + (f" ({remedy})" if remedy else "")
        call.done_ns = call.since_forwarded()
        if reply.status >= 500 or reply.status < 400 or reply.status in _OUR_FAULT:
            raise UpstreamError(message, status=504 if reply.status == 504 else 502)
        call.error = f"the server answered {reply.status}: {words}"
        call.upstream_code = _error_code(body)
        if call.upstream_code != PROMPT_NOT_UNDERSTOOD and is_servers_fault(refusal, sent, upstream):
            call.server_refused(message)
        if not (isinstance(body, dict) and isinstance(body.get("error"), dict)):
            body = error_body(error_message(body), "upstream_refused")
        return await send_json(request, call, reply.status, body)

    async def _pass_whole(
        self, request: web.BaseRequest, call: OpenCall, reply: aiohttp.ClientResponse, keep: Keep | None
    ) -> web.StreamResponse:
        """Check a whole reply, note its tokens, times and texts, and send it to the caller."""
        key = _REPLY_KEYS.get(request.path, "choices")
        raw = await bounded(reply, MAX_REPLY_BYTES if key == "choices" else MAX_VECTORS_BYTES)
        call.done_ns = call.since_forwarded()
        reading = Reading(raw, "something")
        body = reading.body
        if body.get("error") and not body.get(key):
            raise UpstreamError(f"the server reported an error in its reply: {error_message(body)}")
        if not isinstance(body.get(key), list):
            raise UpstreamError(f"the server's reply holds no list of {key}: {raw[:80]!r}")
        if key == "choices":
            choices = reading.choices("message")
            if not choices:
                raise UpstreamError(f"the server's reply holds no choice: {raw[:80]!r}")
            call.finish_reason = str(choices[0].get("finish_reason") or "")
            message = choices[0].get("message")
            call.refused_to_answer = isinstance(message, dict) and bool(message.get("refusal"))
        call.take_usage(reading.usage())
        call.take_timings(body.get("timings"))
        call.output, call.reasoning = _texts_of(body)
        if "data" in body:
            call.output_sha256 = hashlib.sha256(raw).hexdigest()
        raw = reading.dump() if reading.changed else raw
        if keep is not None and reply.status == 200:
            keep("application/json", raw)
        return await send(request, call, web.Response(status=reply.status, body=raw, content_type="application/json"))

    async def _pass_stream(
        self,
        request: web.BaseRequest,
        call: OpenCall,
        reply: aiohttp.ClientResponse,
        keep: Keep | None,
        outgoing: Outgoing,
    ) -> web.StreamResponse:
        """Pass a stream on as it arrives; a failure after its first bytes is sent as its last event."""
        watch = StreamWatch(call, hide_usage=outgoing.hide_usage, max_tokens=outgoing.max_tokens)
        whole = _WholeStream(call, watch, keep if reply.status == 200 else None)
        caller = _StreamToCaller(request, call, reply.status)
        try:
            await self._pass_chunks(reply, watch, whole, caller)
            remainder = watch.end(time.monotonic_ns())
            if call.done_ns is None:
                call.done_ns = call.since_forwarded()
            whole.add(remainder)
        except (UpstreamError, aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = upstream_error(error)
            if not call.status:
                raise failure from error
            call.fail(failure)
            remainder = f"data: {json.dumps(error_body(failure.message, 'upstream_failed'))}\n\n".encode()
        finally:
            watch.finish()
        return await caller.end(remainder)

    async def _pass_chunks(
        self, reply: aiohttp.ClientResponse, watch: StreamWatch, whole: _WholeStream, caller: _StreamToCaller
    ) -> None:
        """Read the server's stream to its end, and pass on each piece at once."""
        size = 0
        while chunk := await reply.content.readany():
            passed = watch.feed(chunk, time.monotonic_ns())
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                raise too_long(MAX_REPLY_BYTES)
            whole.add(passed)
            if passed:
                await caller.write(passed)
            if watch.failure:
                raise watch.failure


class _WholeStream:
    """Collects a forwarded stream, and passes it to ``keep`` once, when its last token has arrived."""

    def __init__(self, call: OpenCall, watch: StreamWatch, keep: Keep | None) -> None:
        self._call = call
        self._watch = watch
        self._keep = keep
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        """Add the next part for the caller. The whole stream goes to ``keep`` before the caller gets its end."""
        if self._keep is None:
            return
        self._parts.append(part)
        if self._call.done_ns is not None and not self._watch.failure:
            self._watch.finish()
            self._keep("text/event-stream", b"".join(self._parts))
            self._keep = None


class _StreamToCaller:
    """The reply to the caller. Its head is sent with the first bytes, so that an earlier failure can have a status."""

    def __init__(self, request: web.BaseRequest, call: OpenCall, status: int) -> None:
        self._request = request
        self._call = call
        self._status = status
        self._response = web.StreamResponse(
            status=status, headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )

    async def write(self, part: bytes) -> None:
        """Send bytes. Raises CallerGoneError if the caller has hung up."""
        async with to_caller():
            await self._begin()
            await self._response.write(part)
        self._call.delivered = self._call.done_ns is not None

    async def end(self, remainder: bytes) -> web.StreamResponse:
        """Send the remainder and close the reply."""
        async with to_caller():
            await self._begin()
            if remainder:
                await self._response.write(remainder)
            await self._response.write_eof()
        self._call.delivered = True
        return self._response

    async def _begin(self) -> None:
        if not self._call.status:
            self._call.status = self._status
            await self._response.prepare(self._request)


@asynccontextmanager
async def to_caller() -> AsyncIterator[None]:
    """Turn errors of a write to the caller into CallerGoneError, as they look like those of the server's connection."""
    try:
        yield
    except (ConnectionError, aiohttp.ClientConnectionError) as error:
        raise CallerGoneError from error


async def _no_stream(reply: aiohttp.ClientResponse) -> str:
    """Return the message for a reply to a streaming request that is no stream; the server's own if it has an error."""
    body: JsonValue = parse_json(await bounded(reply, MAX_ERROR_BYTES, cut=True))
    if isinstance(body, dict) and body.get("error"):
        return f"the server reported an error in its reply: {error_message(body)}"
    return f"the server answered a streaming request with {reply.content_type}"


async def send(request: web.BaseRequest, call: OpenCall, response: web.Response) -> web.StreamResponse:
    """Send the caller a whole response."""
    call.status = response.status
    async with to_caller():
        await response.prepare(request)
        await response.write_eof()
    call.delivered = True
    return response


async def send_json(request: web.BaseRequest, call: OpenCall, status: int, body: JsonValue) -> web.StreamResponse:
    """Send the caller a JSON response."""
    return await send(request, call, web.json_response(body, status=status))


def _error_code(body: JsonValue) -> str:
    """Return the code of an OpenAI error object; empty if there is none."""
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code[:_CODE_CHARS] if isinstance(code, str) else ""


def _texts_of(body: Mapping[str, JsonValue]) -> tuple[str, str]:
    """Return text and thinking of a whole completion."""
    texts, thoughts = [], []
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            message = choice.get("message")
            text = message.get("content") if isinstance(message, dict) else choice.get("text")
            texts.append(text if isinstance(text, str) else "")
            thoughts.append(reasoning_of(message))
    return "\n".join(texts), "\n".join(filter(None, thoughts))
