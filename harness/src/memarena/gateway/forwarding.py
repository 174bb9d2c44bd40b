"""Passing a request on to a model's server and its reply back, while the call's clock runs."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from pydantic import JsonValue

from memarena.gateway.calls import CallerGoneError, OpenCall, UpstreamError, error_body
from memarena.gateway.streams import StreamWatch, error_message, reasoning_of
from memarena.gateway.types import Upstream

_LARGE_BODY = 1 << 19
_CODE_CHARS = 64
_OUR_FAULT = frozenset({401, 403, 404, 405, 408, 425, 429})
"""Client errors that no caller of ours can cause: the server's key, address, route or load. The rest is passed on."""

_PROMPT_KEYS = {
    "/v1/chat/completions": "messages",
    "/v1/completions": "prompt",
    "/v1/embeddings": "input",
    "/v1/rerank": "documents",
}
_REPLY_KEYS = {"/v1/embeddings": "data", "/v1/rerank": "results"}
"""What a reply must hold a list of; ``choices`` for the routes that generate."""


Keep = Callable[[str, bytes], None]
"""Takes the content type and the bytes of a whole reply before the caller has the end of it: it may hang up then, which
ends the handling of its call."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it goes upstream."""

    url: str
    body: bytes
    stream: bool
    hide_usage: bool


def prepare(route: str, body: Mapping[str, JsonValue], upstream: Upstream) -> Outgoing:
    """Rewrite a caller's request for the model's server: its name, the configured extras, usage in every stream."""
    sent: dict[str, JsonValue] = {**body, "model": upstream.upstream_model}
    stream = body.get("stream") is True
    asked = True
    if route not in _REPLY_KEYS:
        for key, value in upstream.extra_body.items():
            given = sent.get(key)
            sent[key] = {**given, **value} if isinstance(given, dict) and isinstance(value, dict) else value
        if stream:
            options = body.get("stream_options")
            options = options if isinstance(options, dict) else {}
            asked = options.get("include_usage") is True
            sent["stream_options"] = {**options, "include_usage": True}
    url = upstream.base_url.rstrip("/") + route.removeprefix("/v1")
    return Outgoing(url, json.dumps(sent, separators=(",", ":")).encode(), stream, not asked)


def describe(call: OpenCall, route: str, body: Mapping[str, JsonValue]) -> None:
    """Note what was asked."""
    call.stream = body.get("stream") is True
    call.prompt = body.get(_PROMPT_KEYS[route])


class Forwarder:
    """Talks to the models' servers over kept connections."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def forward(
        self,
        request: web.BaseRequest,
        call: OpenCall,
        upstream: Upstream,
        outgoing: Outgoing,
        keep: Keep | None = None,
    ) -> web.StreamResponse:
        """Send the request, pass the reply back and fill in the call. The caller has its whole reply on return.

        A reply of status 200 that came whole goes to ``keep`` first, when the call says all that its record will.

        Raises :class:`UpstreamError` if the server fails before the caller was sent anything; a failure after that
        is told to the caller as an error event at the end of its stream. What ``keep`` raises is passed on.
        """
        headers = {"Content-Type": "application/json"}
        if upstream.api_key:
            headers["Authorization"] = f"Bearer {upstream.api_key}"
        data = io.BytesIO(outgoing.body) if len(outgoing.body) > _LARGE_BODY else outgoing.body
        call.forwarded()
        async with self._session.post(outgoing.url, data=data, headers=headers) as reply:
            if reply.status >= 400:
                return await self._pass_error(request, call, reply)
            if outgoing.stream and reply.content_type == "text/event-stream":
                return await self._pass_stream(request, call, reply, keep, hide_usage=outgoing.hide_usage)
            if outgoing.stream:
                raise UpstreamError(f"the server answered a streaming request with {reply.content_type}")
            return await self._pass_whole(request, call, reply, keep)

    async def _pass_error(
        self, request: web.BaseRequest, call: OpenCall, reply: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        raw = await reply.read()
        try:
            body: JsonValue = json.loads(raw)
        except ValueError:
            body = raw[:500].decode("utf-8", "replace")
        message = f"the server answered {reply.status}: {error_message(body)}"
        call.done_ns = call.since_forwarded()
        if reply.status >= 500 or reply.status in _OUR_FAULT:
            raise UpstreamError(message, status=504 if reply.status == 504 else 502)
        call.error = message
        call.upstream_code = _error_code(body)
        if not (isinstance(body, dict) and isinstance(body.get("error"), dict)):
            body = error_body(error_message(body), "upstream_refused")
        return await send_json(request, call, reply.status, body)

    async def _pass_whole(
        self, request: web.BaseRequest, call: OpenCall, reply: aiohttp.ClientResponse, keep: Keep | None
    ) -> web.StreamResponse:
        raw = await reply.read()
        call.done_ns = call.since_forwarded()
        try:
            body: JsonValue = json.loads(raw)
        except ValueError as error:
            raise UpstreamError(f"the server answered with something that is no JSON: {raw[:80]!r}") from error
        wanted = _REPLY_KEYS.get(request.path, "choices")
        if not isinstance(body, dict) or not isinstance(body.get(wanted), list):
            raise UpstreamError(f"the server's reply holds no list of {wanted}: {raw[:80]!r}")
        if wanted == "choices" and not body[wanted]:
            raise UpstreamError(f"the server's reply holds no choice: {raw[:80]!r}")
        call.take_usage(body.get("usage"))
        call.take_timings(body.get("timings"))
        call.output, call.reasoning = _said(body)
        if "data" in body:
            call.output_sha256 = hashlib.sha256(raw).hexdigest()
        if keep is not None and reply.status == 200:
            keep("application/json", raw)
        return await send(request, call, web.Response(status=reply.status, body=raw, content_type="application/json"))

    async def _pass_stream(
        self,
        request: web.BaseRequest,
        call: OpenCall,
        reply: aiohttp.ClientResponse,
        keep: Keep | None,
        *,
        hide_usage: bool,
    ) -> web.StreamResponse:
        watch = StreamWatch(call, hide_usage=hide_usage)
        parts: list[bytes] | None = [] if keep is not None and reply.status == 200 else None

        def keep_part(part: bytes) -> None:
            nonlocal parts
            if keep is None or parts is None:
                return
            parts.append(part)
            if call.done_ns is not None and not watch.failure:
                watch.settle()
                keep("text/event-stream", b"".join(parts))
                parts = None

        response = web.StreamResponse(
            status=reply.status, headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        try:
            while chunk := await reply.content.readany():
                passed = watch.feed(chunk, time.monotonic_ns())
                keep_part(passed)
                if passed:
                    async with to_caller():
                        if not call.status:
                            call.status = reply.status
                            await response.prepare(request)
                        await response.write(passed)
                    call.delivered = call.done_ns is not None
                if watch.failure:
                    raise watch.failure
            rest = watch.end(time.monotonic_ns())
            if call.done_ns is None:
                call.done_ns = call.since_forwarded()
            keep_part(rest)
        except (UpstreamError, aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = upstream_error(error)
            if not call.status:
                raise failure from error
            call.fail(failure)
            rest = f"data: {json.dumps(error_body(failure.message, 'upstream_failed'))}\n\n".encode()
        finally:
            watch.settle()
        async with to_caller():
            if not call.status:
                call.status = reply.status
                await response.prepare(request)
            if rest:
                await response.write(rest)
            await response.write_eof()
        call.delivered = True
        return response


@asynccontextmanager
async def to_caller() -> AsyncIterator[None]:
    """Around every write to the caller, whose errors otherwise look like those of the server's side."""
    try:
        yield
    except (ConnectionError, aiohttp.ClientConnectionError) as error:
        raise CallerGoneError from error


def upstream_error(error: Exception) -> UpstreamError:
    """Any failure of the way to the server, as one line."""
    if isinstance(error, UpstreamError):
        return error
    if isinstance(error, TimeoutError):
        return UpstreamError("the server did not answer in time", status=504)
    words = " ".join(str(error).split()) or type(error).__name__
    return UpstreamError(f"the server failed: {words}")


async def send(request: web.BaseRequest, call: OpenCall, response: web.Response) -> web.StreamResponse:
    """Give the caller a whole response."""
    call.status = response.status
    async with to_caller():
        await response.prepare(request)
        await response.write_eof()
    call.delivered = True
    return response


async def send_json(request: web.BaseRequest, call: OpenCall, status: int, body: JsonValue) -> web.StreamResponse:
    """Give the caller a JSON response."""
    return await send(request, call, web.json_response(body, status=status))


def _error_code(body: JsonValue) -> str:
    """The code of an OpenAI error object; empty if there is none."""
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code[:_CODE_CHARS] if isinstance(code, str) else ""


def _said(body: Mapping[str, JsonValue]) -> tuple[str, str]:
    """Text and thinking of a whole completion."""
    texts, thoughts = [], []
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            message = choice.get("message")
            text = message.get("content") if isinstance(message, dict) else choice.get("text")
            texts.append(text if isinstance(text, str) else "")
            thoughts.append(reasoning_of(message))
    return "\n".join(texts), "\n".join(filter(None, thoughts))
