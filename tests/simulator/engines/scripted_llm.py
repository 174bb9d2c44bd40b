"""A model for the LLM engine's tests: it reads the plan out of the prompt and writes what the plan asks for."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass

from tests.support.model_script import Body
from tests.support.model_server import ModelServer

_TURN = re.compile(r"^(\d+)\. (.+?)(?: — (.*))?$", re.MULTILINE)
_PARTS = re.compile(r"(?:has to say|and then|has to ask): ")
_TALK = (
    "You know how it is with such things, they take their own time",
    "I keep thinking about that and it does not let me go",
    "Honestly, it made me laugh more than it should have",
    "There is something soothing about it, if one lets it happen",
    "My head was somewhere else entirely, as usual",
)


@dataclass(frozen=True)
class Asked:
    """What a request asks for."""

    kind: str
    """session, turn or question."""
    user: str
    turns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(speaker, sentences that the turn has to say) of each turn of a session; empty for other kinds."""
    must: tuple[str, ...] = ()
    """Sentences that a single turn has to say; empty for other kinds."""


def read(body: Body) -> Asked:
    """Return what the prompt in a body asks for."""
    user = str(body["messages"][-1]["content"])
    if "Ask this in other words" in user:
        return Asked("question", user)
    if "Turns, with who speaks in each:" not in user:
        must = next((line for line in user.splitlines() if line.startswith("The turn has to")), "")
        return Asked("turn", user, must=_sentences(must.removeprefix("The turn ")))
    turn_lines = user.split("Turns, with who speaks in each:\n", 1)[1].split("\n\n", 1)[0]
    turns = tuple((match[1], _sentences(match[2] or "")) for match in (m.groups() for m in _TURN.finditer(turn_lines)))
    return Asked("session", user, turns)


def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("«»") for part in _PARTS.split(text) if part.strip())


def small_talk(seed: str, index: int) -> str:
    """Harmless words, different in every turn."""
    number = zlib.crc32(f"{seed}/{index}".encode())
    letters = "".join(chr(ord("a") + (number >> shift) % 26) for shift in range(0, 30, 3))
    return f"{_TALK[index % len(_TALK)]}, {letters}, as they say around {letters[::-1]}."


def session_reply(request: Asked) -> list[dict[str, str]]:
    """A perfect reply to a session."""
    return [
        {"speaker": speaker, "text": " ".join((small_talk(request.user, index), *must))}
        for index, (speaker, must) in enumerate(request.turns)
    ]


def as_json(turns: object) -> str:
    """A session's reply as text."""
    return json.dumps({"turns": turns}, ensure_ascii=False)


def perfect(body: Body) -> str:
    """The perfect reply to any request; questions stay as they are."""
    request = read(body)
    if request.kind == "session":
        return as_json(session_reply(request))
    if request.kind == "turn":
        return json.dumps({"text": " ".join((small_talk(request.user, 1), *request.must))}, ensure_ascii=False)
    return json.dumps({"question": request.user.split("\n\n")[1]})


def requests(server: ModelServer, kind: str) -> list[Asked]:
    """All requests of a kind so far."""
    return [request for request in map(read, list(server.asked)) if request.kind == kind]
