"""The one way to a model's server: nothing is followed, nothing unfolded, nothing read without end.

A server may be anybody's. A redirect would take the key and the prompts elsewhere, a compressed body can unfold to any
size, and a body, a line or a silence need not end. Every request of the harness goes through a session made here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from pydantic import JsonValue

from memarena.gateway.calls import UpstreamError

MAX_ERROR_BYTES = 64 << 10
MAX_REPLY_BYTES = 16 << 20
"""Largest reply of a chat server, streamed or whole, and of what else is asked of a server."""
MAX_VECTORS_BYTES = 256 << 20
"""Largest reply of an embedder or a reranker: vectors are long."""
TOO_LONG = "the server's reply is longer than {:,} bytes"
KEEPALIVE_S = 2.0
"""How long an idle connection to a server is kept: less than the 5 s after which llama.cpp and uvicorn close theirs."""


def new_session(timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
    """A session for servers of models. Its requests are made with ``allow_redirects=False``."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S),
        timeout=timeout,
        trust_env=False,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "memarena-gateway"},
    )


def check_coding(reply: aiohttp.ClientResponse) -> None:
    """Raise :class:`UpstreamError` for a compressed body, which was not asked for: it can unfold without end."""
    coding = reply.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in {"", "identity"}:
        raise UpstreamError(f"the server sent a body in {coding[:40]}, which was not asked for")


async def bounded(reply: aiohttp.ClientResponse, most_bytes: int, *, cut: bool = False) -> bytes:
    """The body of a reply. Raises :class:`UpstreamError` as soon as it is too long, unless it may be ``cut`` there."""
    parts, size = [], 0
    while part := await reply.content.readany():
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            if cut:
                break
            raise UpstreamError(TOO_LONG.format(most_bytes))
    return b"".join(parts)


def upstream_error(error: Exception) -> UpstreamError:
    """Any failure of the way to the server, as one line."""
    if isinstance(error, UpstreamError):
        return error
    if isinstance(error, TimeoutError):
        return UpstreamError("the server did not answer in time", status=504)
    words = " ".join(str(error).split()) or type(error).__name__
    return UpstreamError(f"the server failed: {words[:500]}")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def parsed(self) -> JsonValue:
        """The body as JSON, None where it is none."""
        try:
            parsed: JsonValue = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return parsed


def ask(url: str, api_key: str | None, body: JsonValue = None, *, timeout_s: float, post: bool = False) -> Reply:
    """One request, from outside any event loop: GET, or POST where there is a ``body`` or it is asked for.

    ``timeout_s`` bounds all of it. Raises :class:`UpstreamError` where no whole reply came.
    """

    async def request() -> Reply:
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(5.0, timeout_s))
        method = "GET" if body is None and not post else "POST"
        async with (
            new_session(timeout) as session,
            session.request(method, url, json=body, headers=headers, allow_redirects=False) as reply,
        ):
            check_coding(reply)
            return Reply(reply.status, reply.headers, await bounded(reply, MAX_REPLY_BYTES))

    try:
        return asyncio.run(request())
    except aiohttp.ClientConnectorError as error:
        raise UpstreamError(f"the server cannot be reached: {error.os_error.strerror or error}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise upstream_error(error) from error
