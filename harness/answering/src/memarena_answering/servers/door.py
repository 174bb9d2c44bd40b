"""Sends requests to a model's server from threads: no redirects, no decompression, no proxies, a limit on everything.

httpcore itself does none of the first three. Its timeouts are per read, so that a server which sends a byte now and
then is never cut off; here each read and write may take only the remaining time of its request.
"""

from __future__ import annotations

import json
import math
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2

from memarena_answering.servers.replies import (
    CONNECT_TIMEOUT_S,
    KEEPALIVE_S,
    MAX_REPLY_BYTES,
    Reply,
    authorization,
    broken,
    check_coding,
    limit_size,
    too_slow,
    unreachable,
)


class _Deadline(threading.local):
    """The end of the time of this thread's request (``at``), in seconds of the monotonic clock."""

    at = math.inf

    def left_s(self) -> float:
        remaining_s = self.at - time.monotonic()
        if remaining_s <= 0:
            raise httpcore2.ReadTimeout("the time is over")
        return min(remaining_s, threading.TIMEOUT_MAX)


class _Connection(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: _Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left_s())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Connection(
            self._stream.start_tls(ssl_context, server_hostname, self._deadline.left_s()), self._deadline
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network(httpcore2.SyncBackend):
    def __init__(self, deadline: _Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        timeout_s = min(CONNECT_TIMEOUT_S, self._deadline.left_s())
        return _Connection(super().connect_tcp(host, port, timeout_s, local_address, socket_options), self._deadline)


class Door:
    """A pool of connections to any number of servers. Safe to share between threads. Nothing is retried."""

    def __init__(self, keepalive_s: float = KEEPALIVE_S) -> None:
        self._deadline = _Deadline()
        self._pool = httpcore2.ConnectionPool(
            max_connections=None,
            max_keepalive_connections=64,
            keepalive_expiry=keepalive_s,
            network_backend=_Network(self._deadline),
        )

    def close(self) -> None:
        """Close kept connections. A later request opens new ones."""
        self._pool.close()

    def ask(
        self,
        url: str,
        api_key: str | None,
        body: object = None,
        *,
        timeout_s: float,
        post: bool = False,
        most_bytes: int = MAX_REPLY_BYTES,
    ) -> Reply:
        """Send a request and return its reply. The method is POST if there is a ``body`` or ``post`` is true, else GET.

        ``timeout_s`` is the limit of the whole request. Raises :class:`UpstreamError` if no whole reply came.
        """
        with self.open(url, api_key, body, timeout_s=timeout_s, post=post, most_bytes=most_bytes) as (reply, parts):
            return Reply(reply.status, reply.headers, b"".join(parts))

    @contextmanager
    def open(
        self,
        url: str,
        api_key: str | None,
        body: object = None,
        *,
        timeout_s: float,
        post: bool = False,
        most_bytes: int = MAX_REPLY_BYTES,
    ) -> Iterator[tuple[Reply, Iterable[bytes]]]:
        """Send a request as :meth:`ask`; yield a reply with an empty body, and the parts of the body as they come."""
        at = self._deadline.at = time.monotonic() + timeout_s
        headers: list[tuple[bytes | str, bytes | str]] = [("Accept-Encoding", "identity"), ("User-Agent", "memarena")]
        headers += authorization(api_key).items()
        content = None
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            content = json.dumps(body, separators=(",", ":")).encode()
        method = "POST" if post or content is not None else "GET"
        try:
            request = httpcore2.Request(method, url, headers=headers, content=content)
        except ValueError as error:
            raise unreachable(error) from error
        try:
            with self._pool.stream(request.method, request.url, headers=request.headers, content=content) as response:
                reply = Reply(
                    response.status, {k.decode().lower(): v.decode("latin-1") for k, v in response.headers}, b""
                )
                check_coding(reply.headers)
                yield reply, limit_size(self._parts(response, at), most_bytes)
        except httpcore2.TimeoutException as error:
            raise too_slow() from error
        except httpcore2.ConnectError as error:
            raise unreachable(error.__cause__ or error) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol, OSError) as error:
            raise broken(error) from error

    def _parts(self, response: httpcore2.Response, at: float) -> Iterator[bytes]:
        parts = iter(response.iter_stream())
        while True:
            self._deadline.at = at  # a stream may be continued by another thread
            try:
                yield next(parts)
            except StopIteration:
                return


def ask(url: str, api_key: str | None, body: object = None, *, timeout_s: float, post: bool = False) -> Reply:
    """Send a request as :meth:`Door.ask` over a new connection, close it and return the reply."""
    door = Door()
    try:
        return door.ask(url, api_key, body, timeout_s=timeout_s, post=post)
    finally:
        door.close()
