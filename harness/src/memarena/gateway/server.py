"""Implements the gateway: an OpenAI-compatible server between backends and models that meters every call.

A backend gets the gateway's URL and a token for each RPC (SPEC.md MOD), so that the log has for every model call the
RPC that caused it, its times and its tokens. The harness's own requests to a reader go through it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web
from memarena_answering.servers.replies import UpstreamError
from memarena_answering.servers.sessions import new_session, upstream_error
from pydantic import JsonValue

from memarena.gateway.budgets import check_prompt
from memarena.gateway.cache import ReplyCache, cache_key
from memarena.gateway.calls import CallerGoneError, OpenCall, RefusedError, error_body
from memarena.gateway.counting import count_tokens
from memarena.gateway.forwarding import Forwarder, Outgoing, describe, prepare, send, send_json
from memarena.gateway.tokens import TokenBook, random_token
from memarena.gateway.types import Budget, CallContext, GatewayError, Phase, Upstream
from memarena.log.records import GatewayCall

MAX_BODY_BYTES = 16 << 20
"""Largest request body that is accepted."""

_LONGEST_REPLY = 2.0
"""Longest time of a whole reply, as a multiple of the longest silence within it."""
_LOOPBACK_FOR = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (compared with, not bound to)
"""Address by which this machine reaches a gateway that listens on all addresses."""

_GENERATION_ROLES = frozenset({"reader", "extractor"})
_ROLES = {
    "/v1/chat/completions": _GENERATION_ROLES,
    "/v1/completions": _GENERATION_ROLES,
    "/v1/embeddings": frozenset({"embedder"}),
    "/v1/rerank": frozenset({"reranker"}),
}
_METHODS = {**dict.fromkeys(_ROLES, "POST"), "/v1/tokenize": "POST", "/v1/models": "GET"}


class Gateway:
    """Gives metered access to models. ``start`` it, ``grant`` a token per RPC, ``revoke`` it when the RPC has returned.

    ``record`` is called once per call, from the gateway's thread, after the caller got its reply; if it raises, the
    next ``grant``, ``revoke`` or ``stop`` raises that error, so that no run goes on without its log.
    """

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        record: Callable[[GatewayCall], None],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertised_url: str | None = None,
        keep_texts: bool = True,
        token_factory: Callable[[], str] = random_token,
        upstream_timeout_s: float = 600.0,
        budgets: Mapping[Phase, Budget] | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        """``budgets``: limits of one RPC by phase; ``cache_dir``: cache of replies, for runs that time nothing."""
        self._upstreams = {upstream.model: upstream for upstream in upstreams}
        if len(self._upstreams) != len(upstreams):
            raise GatewayError("two models of the gateway have the same name")
        self._record = record
        self._host, self._port = host, port
        self._advertised_url = advertised_url
        self._keep_texts = keep_texts
        self._tokens = TokenBook(token_factory, budgets)
        self._cache = None if cache_dir is None else ReplyCache(cache_dir)
        self._timeout = aiohttp.ClientTimeout(
            total=_LONGEST_REPLY * upstream_timeout_s, sock_connect=5, sock_read=upstream_timeout_s
        )
        self._call_prefix = secrets.token_hex(4)
        self._call_count = 0
        self._open: set[OpenCall] = set()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    # ------------------------------------------------------------------ for the harness

    @property
    def base_url(self) -> str:
        """Return ``http://HOST:PORT/v1`` for this machine, known once the gateway is started."""
        host = _LOOPBACK_FOR.get(self._host, self._host)
        return f"http://[{host}]:{self._port}/v1" if ":" in host else f"http://{host}:{self._port}/v1"

    @property
    def advertised_url(self) -> str:
        """Return the URL that backends get: the configured one, else :attr:`base_url`."""
        return self._advertised_url or self.base_url

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """Return the models behind the gateway."""
        return tuple(self._upstreams.values())

    def replace_upstream(self, upstream: Upstream) -> None:
        """Replace the server of a model, after a restart of the server. Calls under way go on."""
        if upstream.model not in self._upstreams:
            raise GatewayError(f"the gateway has no model {upstream.model}")
        self._upstreams = {**self._upstreams, upstream.model: upstream}

    def add_upstream(self, upstream: Upstream) -> None:
        """Add a model. Raises :class:`GatewayError` if a model of its name is served already."""
        if upstream.model in self._upstreams:
            raise GatewayError("two models of the gateway have the same name")
        self._upstreams = {**self._upstreams, upstream.model: upstream}

    def remove_upstream(self, model: str) -> None:
        """Remove a model, whose server was stopped; calls for it are refused with 404."""
        self._upstreams = {name: upstream for name, upstream in self._upstreams.items() if name != model}

    def start(self) -> None:
        """Start to listen. Raises :class:`GatewayError` if the address cannot be used."""
        if self._thread is not None:
            raise GatewayError("the gateway runs already")
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listener = socket.create_server((self._host, self._port), family=family, backlog=128)
        except (OSError, UnicodeError) as error:  # a name that no host can have is the latter
            errno = error.errno if isinstance(error, OSError) else None
            reason = os.strerror(errno) if errno else str(error)
            raise GatewayError(f"gateway: cannot listen on {self._host}:{self._port}: {reason}") from error
        self._port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listener, ready), name="memarena-gateway", daemon=True)
        self._thread.start()
        ready.wait()
        self._raise_failure()

    def stop(self) -> None:
        """End calls under way, record them and stop listening. May be called twice."""
        if self._thread is not None and self._loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None
        self._raise_failure()

    def grant(self, context: CallContext) -> str:
        """Return a token for one RPC."""
        self._raise_failure()
        return self._tokens.grant(context)

    def open_cell(self, token: str | None, cell_id: str | None, names: Mapping[str, str]) -> str:
        """Open a token for a whole cell (None: a new one) and return it; ``begin`` and ``revoke`` mark its RPCs.

        See SPEC.md MOD-8. ``names`` are aliases of models, for a server configured before the models were known.
        """
        self._raise_failure()
        return self._tokens.open_cell(token, cell_id, names)

    def begin(self, token: str, context: CallContext) -> None:
        """Note that an RPC begins, to which a cell's token belongs until :meth:`revoke`."""
        self._raise_failure()
        self._tokens.begin(token, context)

    def revoke(self, token: str, wait_s: float = 2.0) -> tuple[GatewayCall, ...]:
        """End a token after its RPC has returned; return all calls made with it, in order of arrival.

        Calls still under way get ``wait_s`` seconds to end and are then cancelled, so that they cannot disturb the next
        measurement. Later calls are refused with 403 and recorded as ``after_return``.
        """
        calls = self._tokens.revoke(token, wait_s, self._abort)
        self._raise_failure()
        return calls

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _abort(self, call: OpenCall, reason: str = "cut off: still under way after its RPC had returned") -> None:
        """Cancel a call, from any thread."""
        call.abort_reason = reason
        if call.task is not None and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and every call with it
                self._loop.call_soon_threadsafe(call.task.cancel)

    # ------------------------------------------------------------------ in the gateway's thread

    def _run(self, listener: socket.socket, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(listener, ready))
        except BaseException as error:  # noqa: BLE001  (it must reach the harness's own thread)
            self._failure = self._failure or error
        finally:
            ready.set()

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        """Serve calls until the gateway is stopped, then abort those under way and wait until they have ended."""
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        async with new_session(self._timeout) as self._session:
            self._forwarder = Forwarder(self._session)
            handlers = web.Server(self._handle, handler_cancellation=True, access_log=None, lingering_time=2.0)
            server = await self._loop.create_server(handlers, sock=listener)
            ready.set()
            await self._stopping.wait()
            server.close()
            tasks = [call.task for call in self._open if call.task is not None]
            for call in list(self._open):
                self._abort(call, "cut off: the gateway stopped")
            await asyncio.gather(*tasks, return_exceptions=True)
            await handlers.shutdown(timeout=1.0)
            await server.wait_closed()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle a request as a call: from its arrival to its record."""
        self._call_count += 1
        call = OpenCall(f"{self._call_prefix}-{self._call_count:07}", request.path)
        self._open.add(call)
        kind, _, credentials = request.headers.get("Authorization", "").partition(" ")
        token = credentials.strip() if kind.lower() == "bearer" else None
        try:
            return await self._answer(request, call, token)
        except asyncio.CancelledError:
            call.abandon()
            raise
        except CallerGoneError as error:
            call.abandon()
            raise asyncio.CancelledError from error  # so that aiohttp closes the connection and says nothing
        finally:
            self._open.discard(call)
            self._close_call(token, call)

    def _close_call(self, token: str | None, call: OpenCall) -> None:
        """Record a call that has ended. An error of the recorder reaches the harness's own thread."""
        record = call.record(keep_texts=self._keep_texts)
        try:
            self._record(record)
        except BaseException as error:  # noqa: BLE001  (whatever it is, it must reach the harness's own thread)
            self._failure = self._failure or error
        self._tokens.note(token, call, record)

    async def _answer(self, request: web.BaseRequest, call: OpenCall, token: str | None) -> web.StreamResponse:
        """Serve a call; every failure becomes an OpenAI-style error, and is noted in the call's record."""
        try:
            try:
                return await self._route(request, call, token)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise upstream_error(error) from error
        except RefusedError as error:
            call.refuse(error)
            return await _send_error(request, call, error.status, error.message, error.code)
        except UpstreamError as error:
            call.fail(error)
            return await _send_error(request, call, error.status, error.message, "upstream_failed")
        except CallerGoneError:
            raise
        except Exception as error:
            answering = call.status != 0
            call.fail(UpstreamError(f"gateway fault: {type(error).__name__}: {error}", status=500))
            if answering:
                raise CallerGoneError from error
            return await _send_error(request, call, 500, call.error, "upstream_failed")

    async def _route(self, request: web.BaseRequest, call: OpenCall, token: str | None) -> web.StreamResponse:
        """Check token, route and model of a call, and answer it by its route."""
        self._tokens.admit(token, call)
        method = _METHODS.get(call.route)
        if method is None:
            raise RefusedError(404, "unknown_route", f"no such route: {call.route}")
        if request.method != method:
            raise RefusedError(405, "method_not_allowed", f"{call.route} takes {method}")
        if call.route == "/v1/models":
            return await self._models(request, call)
        body = _parse_body(await _body(request))
        model = body.get("model")
        if isinstance(model, str) and model not in self._upstreams:
            model = call.names.get(model, model)
        upstream = self._upstreams.get(model) if isinstance(model, str) else None
        call.model = model if isinstance(model, str) else ""
        roles = _ROLES.get(call.route)
        if upstream is None or (roles is not None and upstream.role not in roles):
            raise RefusedError(404, "model_not_found", f"no model {json.dumps(model)[:100]} for {call.route}")
        if call.route == "/v1/tokenize":
            return await self._tokenize(request, call, upstream, body)
        describe(call, call.route, body)
        check_prompt(call)
        outgoing = prepare(call.route, body, upstream)
        if self._cache is None:
            return await self._forwarder.forward(request, call, upstream, outgoing, body=body)
        return await self._answer_cached(request, call, upstream, outgoing, self._cache, body)

    async def _answer_cached(
        self,
        request: web.BaseRequest,
        call: OpenCall,
        upstream: Upstream,
        outgoing: Outgoing,
        cache: ReplyCache,
        body: Mapping[str, JsonValue],
    ) -> web.StreamResponse:
        """Answer a call from the cache, or forward it and cache the reply."""
        key = cache_key(call.route, upstream, outgoing)
        cached_reply = cache.find(key)
        if cached_reply is not None:
            cached_reply.fill(call)
            return await send(
                request,
                call,
                web.Response(body=cached_reply.body.encode(), headers={"Content-Type": cached_reply.content_type}),
            )
        return await self._forwarder.forward(
            request,
            call,
            upstream,
            outgoing,
            lambda content_type, reply: cache.keep(key, content_type, reply, call),
            body=body,
        )

    async def _models(self, request: web.BaseRequest, call: OpenCall) -> web.StreamResponse:
        offered: list[JsonValue] = [
            {"id": name, "object": "model", "created": 0, "owned_by": "memarena"} for name in self._upstreams
        ]
        return await send_json(request, call, 200, {"object": "list", "data": offered})

    async def _tokenize(
        self, request: web.BaseRequest, call: OpenCall, upstream: Upstream, body: dict[str, JsonValue]
    ) -> web.StreamResponse:
        """Count the tokens of the texts in a request."""
        texts = body.get("texts")
        if not isinstance(texts, list):
            raise RefusedError(400, "invalid_texts", "texts: expected a list of strings")
        strings = [text for text in texts if isinstance(text, str)]
        if len(strings) != len(texts):
            raise RefusedError(400, "invalid_texts", "texts: expected a list of strings")
        call.forwarded()
        counts: list[JsonValue] = list(await count_tokens(self._session, upstream, strings))
        call.done_ns = call.since_forwarded()
        return await send_json(request, call, 200, {"counts": counts})


async def _send_error(
    request: web.BaseRequest, call: OpenCall, status: int, message: str, code: str
) -> web.StreamResponse:
    return await send_json(request, call, status, error_body(message, code))


async def _body(request: web.BaseRequest) -> bytes:
    """Return the request's body. Raises :class:`RefusedError` (413) as soon as it is too long."""
    too_long = RefusedError(413, "body_too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise too_long
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    parts, size = [], 0
    try:
        while part := await request.content.readany():
            parts.append(part)
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise too_long
    except ConnectionError as error:
        raise CallerGoneError from error
    except web.RequestPayloadError as error:
        raise RefusedError(400, "invalid_body", f"the body cannot be read: {error}") from error
    return b"".join(parts)


def _parse_body(raw: bytes) -> dict[str, JsonValue]:
    try:
        body: JsonValue = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "invalid_json", "the body is no valid JSON") from error
    if not isinstance(body, dict):
        raise RefusedError(400, "invalid_json", "the body is no JSON object")
    return body
