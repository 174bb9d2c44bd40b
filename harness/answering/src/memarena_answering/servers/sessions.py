"""Sends requests to a model's server from event loops, with the limits of :mod:`memarena_answering.servers.door`.

It uses aiohttp, which takes a fifth of the event loop's time that the openai package or httpcore take: in the gateway
that is part of the time to a first token, in the simulator it decides whether a server is kept busy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import urllib.request
from collections.abc import Mapping
from contextvars import ContextVar
from urllib.parse import urlsplit

import aiohttp

from memarena_answering.servers.replies import (
    CONNECT_TIMEOUT_S,
    KEEPALIVE_S,
    MAX_REPLY_BYTES,
    Reply,
    UpstreamError,
    authorization,
    broken,
    check_coding,
    too_long,
    too_slow,
    unreachable,
)

_reused: ContextVar[bool] = ContextVar("reused", default=False)
"""Whether the request of this task reused the connection of an earlier request."""


def new_session(timeout: aiohttp.ClientTimeout | None = None, proxy: str | None = None) -> aiohttp.ClientSession:
    """Return a session for model servers. Callers pass ``allow_redirects=False`` in each request."""
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_note_reuse)
    return aiohttp.ClientSession(
        trace_configs=[trace],
        middlewares=[_again_if_kept],
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S),
        timeout=timeout or aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        proxy=proxy,
        trust_env=False,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "memarena"},
    )


async def _note_reuse(*_: object) -> None:
    _reused.set(True)


async def _again_if_kept(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request, and again if it was on a reused connection that closed before a reply began.

    A server may close an idle connection at the moment of the next request (RFC 9112, 9.3.1). If a new connection
    closes, it is the server's failure.
    """
    while True:
        _reused.set(False)
        try:
            return await handler(request)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not _reused.get():
                raise


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None for this machine. Not for use in each request."""
    parts = urlsplit(url)
    if not parts.hostname or _is_local(parts.hostname) or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


async def bounded(reply: aiohttp.ClientResponse, most_bytes: int, *, cut: bool = False) -> bytes:
    """Return the body of a reply. If it exceeds ``most_bytes``, stop if ``cut``, else raise :class:`UpstreamError`."""
    parts, size = [], 0
    while part := await reply.content.readany():
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            if cut:
                break
            raise too_long(most_bytes)
    return b"".join(parts)


async def post(
    session: aiohttp.ClientSession, url: str, api_key: str | None, body: Mapping[str, object], timeout_s: float
) -> Reply:
    """Post a request and return the reply. Raises :class:`UpstreamError` if no whole reply came in ``timeout_s``."""
    try:
        async with (
            asyncio.timeout(timeout_s),
            session.post(url, json=body, headers=authorization(api_key), allow_redirects=False) as reply,
        ):
            check_coding(reply.headers)
            return Reply(reply.status, reply.headers, await bounded(reply, MAX_REPLY_BYTES))
    except aiohttp.ClientConnectorError as error:
        raise unreachable(error.os_error) from error
    except (aiohttp.ClientError, OSError) as error:
        raise upstream_error(error) from error


def upstream_error(error: Exception) -> UpstreamError:
    """Return any failure of a request as an UpstreamError with a message of one line."""
    if isinstance(error, UpstreamError):
        return error
    if isinstance(error, TimeoutError):
        return too_slow()
    return broken(error)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
