"""Habits of real servers of the OpenAI API, as public bug reports describe them: one server, one table.

A :class:`Habit` says what the server does; where it says nothing, the server answers every question in good form.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from memarena.readers.serving import ThreadedServer

MODEL = "some-model"
Body = Mapping[str, Any]
Chat = Callable[["HabitServer", Body, web.BaseRequest], Any]
"""From a request to a reply: events of a stream, or a whole response."""

ANSWER = '{"answer": "Tuesday", "reason": "it says so"}'


def chunk(delta: Mapping[str, Any], finish: object = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def words_of(body: Body) -> int:
    return sum(len(str(message["content"]).split()) for message in body["messages"])


def usage(prompt: object, completion: object = 5) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def good(server: HabitServer, body: Body, request: web.BaseRequest) -> list[bytes]:
    return [chunk({"content": ANSWER}), chunk({}, "stop"), usage(words_of(body) * 2), DONE]


def says(*events: bytes | float | Callable[[], bytes]) -> Chat:
    """The same events for every question: bytes to send, seconds to wait, or what is sent again and again."""
    return lambda server, body, request: list(events)


def refuses(
    status: int, body: object, when: Callable[[Body], bool] = lambda _: True, retry_after: str | None = None
) -> Chat:
    """An error for some requests, a good reply to the others."""

    def chat(server: HabitServer, asked: Body, request: web.BaseRequest) -> object:
        if not when(asked):
            return good(server, asked, request)
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        if isinstance(body, str):
            return web.Response(status=status, text=body, content_type="text/html", headers=headers)
        return web.json_response(body, status=status, headers=headers)

    return chat


def first_then(count: int, bad: Chat, then: Chat = good) -> Chat:
    """One way for the first requests, another afterwards."""
    return lambda server, body, request: (bad if server.chats <= count else then)(server, body, request)


@dataclass(frozen=True)
class Habit:
    """What a server does. ``models``: the reply to the list of models, a status and a body."""

    chat: Chat = good
    models: tuple[int, object] = (200, {"data": [{"id": MODEL}]})
    side: Mapping[str, object] = field(default_factory=dict)
    """Replies by path, with status 200 or as a status and a body."""
    redirect: str = ""
    """Where GET of anything leads."""


class HabitServer:
    """A server with a habit on loopback; a context manager."""

    def __init__(self, habit: Habit) -> None:
        self.habit = habit
        self.chats = 0
        self.seen: list[tuple[str, Body, Mapping[str, str]]] = []
        self._lock = threading.Lock()
        self._server = ThreadedServer(self._handle, "habits")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}/v1"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()
        body = json.loads(raw) if raw else {}
        with self._lock:
            self.seen.append((request.path, body, dict(request.headers)))
            self.chats += request.path.endswith("/chat/completions")
        if self.habit.redirect:
            return web.Response(status=302, headers={"Location": self.habit.redirect})
        if request.path == "/v1/models":
            status, models = self.habit.models
            if callable(models):
                status, models = models(self)
            return web.json_response(models, status=status)
        if request.path in self.habit.side:
            reply = self.habit.side[request.path]
            status, reply = reply if isinstance(reply, tuple) else (200, reply)
            return web.json_response(reply, status=status)
        if not request.path.endswith("/chat/completions"):
            return web.json_response({"error": {"message": "no such route"}}, status=404)
        reply = self.habit.chat(self, body, request)
        return await self._stream(request, reply) if isinstance(reply, list) else reply

    async def _stream(self, request: web.BaseRequest, events: list[object]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            if isinstance(event, float):
                await asyncio.sleep(event)
            elif callable(event):
                while True:
                    await response.write(event())
            else:
                assert isinstance(event, bytes)
                await response.write(event)
        await response.write_eof()
        return response


def gzipped(server: HabitServer, body: Body, request: web.BaseRequest) -> web.Response:
    """A body that unfolds to 64 MB."""
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}
    return web.Response(body=gzip.compress(b"data: " + b" " * (64 << 20)), headers=headers)
