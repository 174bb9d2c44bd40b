"""Serves a reader whose first token takes a known time: HTTP/1.1 with prepared head and opening of the stream.

It streams what the null reader does, for every chat completion asked of it. ``prompt_ms`` of the closing chunk is how
long the first token was held back, from the arrival of the request.
"""

from __future__ import annotations

import io
import json
import socket
import socketserver
from collections.abc import Mapping

from _scripted import Arrivals, Listener, hold, serve
from memarena.readers import wire
from memarena.readers.scripted import TOKENS
from pydantic import JsonValue

_MODEL = "scripted-reader"
_REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\n"
_NOT_SERVED = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _piece(events: bytes) -> bytes:
    """Return bytes as one chunk of a body of unknown length (RFC 9112, 7.1)."""
    return b"%x\r\n%b\r\n" % (len(events), events)


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    return wire.sse(wire.chat_chunk(_MODEL, delta, finish))


_FIRST, *_LATER = (_chunk({"content": token}) for token in TOKENS)
_OPENING = _HEAD + _piece(_chunk({"role": "assistant", "content": ""}) + _FIRST)
_REST = b"".join(_piece(token) for token in _LATER)


def _closing(body: Mapping[str, JsonValue], held_ns: int) -> bytes:
    prompt_tokens = wire.bytes_tokens([message.content for message in wire.chat_messages(body)])
    usage = wire.token_usage(prompt_tokens, len(TOKENS), 0)
    last = wire.usage_chunk(_MODEL, usage) | {"timings": {"prompt_ms": held_ns / 1e6}}
    return _piece(_chunk({}, "stop") + wire.sse(last) + wire.DONE) + b"0\r\n\r\n"


class _Connection(socketserver.BaseRequestHandler):
    """One client's connection, its requests one after another."""

    request: socket.socket
    server: Listener

    def handle(self) -> None:
        """Serve until the client goes."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        arrivals = Arrivals(self.request)
        received = io.BufferedReader(arrivals)
        while line := received.readline():
            length = 0
            while header := received.readline().lower().strip():
                name, _, value = header.partition(b":")
                if name == b"content-length":
                    length = int(value)
            raw = received.read(length)
            if line != _REQUEST:
                self.request.sendall(_NOT_SERVED)
                continue
            held_ns = hold(arrivals.last_ns, self.server.delay_ns)
            self.request.sendall(_OPENING)
            self.request.sendall(_REST + _closing(json.loads(raw), held_ns))


if __name__ == "__main__":
    serve(_Connection)
