"""A model for the LLM engine's tests: it reads the plan out of the prompt and writes what the plan asks for."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web
from memarena.readers.serving import ThreadedServer
from pydantic import JsonValue

_TURN = re.compile(r"^(\d+)\. (.+?)(?: — (.*))?$", re.MULTILINE)
_PARTS = re.compile(r"(?:has to say|and then|has to ask): ")
_TALK = (
    "You know how it is with such things, they take their own time",
    "I keep thinking about that and it does not let me go",
    "Honestly, it made me laugh more than it should have",
    "There is something soothing about it, if one lets it happen",
    "My head was somewhere else entirely, as usual",
)


Body = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Asked:
    """What a request asks for."""

    kind: str
    """session, turn or question."""
    user: str
    turns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of a session: the speaker of each turn, and the sentences that the turn has to say."""
    must: tuple[str, ...] = ()
    """Of a turn."""


def read(body: Body) -> Asked:
    """The request behind a body."""
    messages = body["messages"]
    assert isinstance(messages, list)
    last = messages[-1]
    assert isinstance(last, dict)
    user = str(last["content"])
    if "Ask this in other words" in user:
        return Asked("question", user)
    if "Turns, with who speaks in each:" not in user:
        must = next((line for line in user.splitlines() if line.startswith("The turn has to")), "")
        return Asked("turn", user, must=_sentences(must.removeprefix("The turn ")))
    listed = user.split("Turns, with who speaks in each:\n", 1)[1].split("\n\n", 1)[0]
    turns = tuple((match[1], _sentences(match[2] or "")) for match in (m.groups() for m in _TURN.finditer(listed)))
    return Asked("session", user, turns)


def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("«»") for part in _PARTS.split(text) if part.strip())


def small_talk(seed: str, place: int) -> str:
    """Harmless words, different in every turn."""
    number = zlib.crc32(f"{seed}/{place}".encode())
    letters = "".join(chr(ord("a") + (number >> shift) % 26) for shift in range(0, 30, 3))
    return f"{_TALK[place % len(_TALK)]}, {letters}, as they say around {letters[::-1]}."


def session_reply(asked: Asked) -> list[dict[str, str]]:
    """A perfect reply to a session."""
    return [
        {"speaker": speaker, "text": " ".join((small_talk(asked.user, place), *must))}
        for place, (speaker, must) in enumerate(asked.turns)
    ]


def as_json(turns: object) -> str:
    """A session's reply as text."""
    return json.dumps({"turns": turns}, ensure_ascii=False)


def perfect(body: Body) -> str:
    """The perfect reply to any request; questions stay as they are."""
    asked = read(body)
    if asked.kind == "session":
        return as_json(session_reply(asked))
    if asked.kind == "turn":
        return json.dumps({"text": " ".join((small_talk(asked.user, 1), *asked.must))}, ensure_ascii=False)
    return json.dumps({"question": asked.user.split("\n\n")[1]})


@dataclass(frozen=True)
class Reaction:
    """What the server does with a request. ``raw`` is sent instead of a completion."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish: str = "stop"
    delay_s: float = 0.0
    raw: str | None = None


Behaviour = Callable[[Body, int], Reaction]
"""From a request's body and its number (from 0) to what is done with it."""


def friendly(body: Body, _number: int) -> Reaction:
    """Perfect replies at once."""
    return Reaction(perfect(body))


class ModelServer:
    """An OpenAI-compatible server in a thread. ``gate``, if given, is awaited before every reply."""

    def __init__(self, behaviour: Behaviour = friendly, gate: Callable[[ModelServer], object] | None = None) -> None:
        self.behaviour = behaviour
        self.bodies: list[dict[str, JsonValue]] = []
        self.in_flight = self.most_in_flight = 0
        self.gate = gate
        self._server = ThreadedServer(self._handle, "model-server")

    @property
    def url(self) -> str:
        """Where the API is."""
        return f"http://127.0.0.1:{self._server.port}/v1"

    def requests(self, kind: str) -> list[Asked]:
        """All requests of a kind so far."""
        return [asked for asked in map(read, list(self.bodies)) if asked.kind == kind]

    def __enter__(self) -> ModelServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = json.loads(await request.content.read())
        number = len(self.bodies)
        self.bodies.append(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.gate is not None:
                waiting = self.gate(self)
                assert asyncio.iscoroutine(waiting)
                await waiting
            reaction = self.behaviour(body, number)
            await asyncio.sleep(reaction.delay_s)
        finally:
            self.in_flight -= 1
        if reaction.raw is not None:
            return web.Response(text=reaction.raw, content_type="application/json", status=reaction.status)
        if reaction.status != 200:
            error = {"error": {"message": reaction.text or "scripted failure", "type": "scripted"}}
            return web.json_response(error, status=reaction.status, headers=dict(reaction.headers))
        choice = {
            "index": 0,
            "finish_reason": reaction.finish,
            "message": {"role": "assistant", "content": reaction.text},
        }
        usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        reply = {
            "id": "r",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        return web.json_response(reply)
