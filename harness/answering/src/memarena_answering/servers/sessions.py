"""The way to a model's server for event loops, with the bounds of :mod:`memarena_answering.servers.door`.

It goes through aiohttp, which takes a fifth of the event loop's time that the openai package or httpcore take: in the
gateway that is time to a first token, in the simulator it decides whether a server is kept busy.
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
"""Whether the request of this task went over a connection that was kept from an earlier one."""


def new_session(timeout: aiohttp.ClientTimeout | None = None, proxy: str | None = None) -> aiohttp.ClientSession:
    """A session for servers of models. Its requests are made with ``allow_redirects=False``."""
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
    """A server may close a kept connection at the moment of the next request (RFC 9112, 9.3.1): that one is sent again.

    Only where a kept connection ended before a reply began: what ends on a new connection is the server's failure.
    """
    while True:
        _reused.set(False)
        try:
            return await handler(request)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not _reused.get():
                raise


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL, none on this machine. Read once and not for each request."""
    parts = urlsplit(url)
    if not parts.hostname or _is_local(parts.hostname) or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


async def bounded(reply: aiohttp.ClientResponse, most_bytes: int, *, cut: bool = False) -> bytes:
    """The body of a reply. Raises :class:`UpstreamError` as soon as it is too long, unless it may be ``cut`` there."""
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
    """One request, all of it within ``timeout_s``. Raises :class:`UpstreamError` where no whole reply came."""
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
    """Any failure of the way to the server, as one line."""
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
