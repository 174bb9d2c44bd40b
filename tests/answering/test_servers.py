"""Tests both HTTP clients of a model server (thread and event loop) against hostile servers: errors, never a hang."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import pytest
from memarena_answering.servers.door import ask
from memarena_answering.servers.replies import MAX_REPLY_BYTES, Reply, UpstreamError
from memarena_answering.servers.sessions import new_session, post

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
PART = b"x" * (1 << 20)


def slowly(head: bytes) -> Iterator[bytes]:
    """Yield a header that grows by a byte every 50 ms; after ten seconds the reply is complete."""
    yield head + b"X: "
    for _ in range(200):
        time.sleep(0.05)
        yield b"x"
    yield b"\r\nContent-Length: 2\r\n\r\n{}"


@contextlib.contextmanager
def serving(sends: Iterable[bytes]) -> Iterator[str]:
    """Run a server of one request that sends these bytes until the client hangs up; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1 << 16)
                for each in sends:
                    connection.sendall(each)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/chat/completions"
        thread.join(timeout=60)


def from_a_thread(url: str, timeout_s: float) -> Reply:
    return ask(url, "key", {}, timeout_s=timeout_s)


def from_a_loop(url: str, timeout_s: float) -> Reply:
    async def asked() -> Reply:
        async with new_session() as session:
            return await post(session, url, "key", {}, timeout_s)

    return asyncio.run(asked())


WAYS = pytest.mark.parametrize("way", [from_a_thread, from_a_loop])


@WAYS
@pytest.mark.parametrize(
    ("sends", "timeout_s", "words"),
    [
        (lambda: slowly(OK), 0.5, "did not answer in time"),
        (lambda: [OK + b"Content-Encoding: gzip\r\n\r\n"], 30.0, "a body in gzip, which was not asked for"),
        (lambda: [OK + b"\r\n", *[PART] * 32], 30.0, f"longer than {MAX_REPLY_BYTES:,} bytes"),
        (lambda: [OK + b"X: " + PART + b"\r\n\r\n"], 30.0, "the server failed"),
        (lambda: [OK + b"Content-Length: 9\r\n\r\n{}"], 30.0, "the server failed"),
        (lambda: [b"no HTTP\r\n\r\n"], 30.0, "the server failed"),
    ],
)
def test_an_endless_or_malformed_reply_is_an_error(
    way: Callable[[str, float], Reply], sends: Callable[[], Iterable[bytes]], timeout_s: float, words: str
) -> None:
    with serving(sends()) as url, pytest.raises(UpstreamError, match=words):
        way(url, timeout_s)


@WAYS
def test_a_redirect_is_reported_and_not_followed(way: Callable[[str, float], Reply]) -> None:
    with serving([b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:9/x\r\nContent-Length: 0\r\n\r\n"]) as url:
        reply = way(url, 30.0)
    assert reply.status == 307
    assert reply.error_line() == "a redirect to http://127.0.0.1:9/x, which is not followed"


@contextlib.contextmanager
def closing_kept_connections(replies: int) -> Iterator[tuple[str, list[int]]]:
    """Run a server that closes each connection at its second request, and all new ones after ``replies`` replies.

    Yields its URL and, for each request, its number on its connection (0 or 1).
    """
    requests: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    for number in range(2):
                        if not connection.recv(1 << 16):
                            break
                        requests.append(number)
                        if number or sum(each == 0 for each in requests) > replies:
                            break
                        connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/chat/completions", requests
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=60)


def test_a_request_is_sent_again_if_a_reused_connection_ends_and_not_if_a_new_one_does() -> None:
    async def asked(url: str, times: int) -> None:
        async with new_session() as session:
            for _ in range(times):
                await post(session, url, None, {}, 30.0)

    with closing_kept_connections(replies=9) as (url, requests):
        asyncio.run(asked(url, 3))
    assert requests == [0, 1, 0, 1, 0]
    with (
        closing_kept_connections(replies=1) as (url, requests),
        pytest.raises(UpstreamError, match="the server failed"),
    ):
        asyncio.run(asked(url, 2))
    assert requests == [0, 1, 0]
