"""What the scripted model server answers: one :class:`Script` for each request, and the faults that it knows by name.

| fault | what the server does |
| --- | --- |
| none | answers in good form |
| status | an error of status 500, or of the script's own |
| malformed | a body, or a chunk after the first token, that is no JSON |
| error_event | an error inside the stream, after the first token |
| disconnect | hangs up before it answers |
| break | hangs up after the first token |
| cut | ends the stream in good form after the first token, without its end |
| stall | never goes on after the first token |
| endless | repeats the last token until the caller goes away |

All else a script says with its fields: statuses and headers, a whole body, the events of a stream one by one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from memarena_answering import count_by_bytes

Fault = Literal["none", "status", "malformed", "error_event", "disconnect", "break", "cut", "stall", "endless"]
Message = dict[str, Any]
Event = bytes | float | Callable[[], bytes]
"""Of a stream: bytes to send, seconds to wait, or what is sent again and again until the caller goes away."""

DIMENSIONS = 64
DONE = b"data: [DONE]\n\n"
ANSWER = '{"answer": "Tuesday", "reason": "it says so"}'

_WORD = re.compile(r"\w+")


class Body(dict[str, Any]):
    """A request's body. ``number`` counts the chats of a server, or the requests for a path of its own, from 0."""

    number = -1


class UnknownPromptError(ValueError):
    """A prompt that the rules of a scripted model are not made for; the message is one line. Answered with 422."""


@dataclass(frozen=True)
class Script:
    """One reply. Delays count from the moment at which the request has been read."""

    tokens: tuple[str, ...] | str = ('{"answer": "', "as scripted", '", "reason": "', "it is in the script", '"}')
    status: int = 200
    message: str = "as scripted"
    """Of an error: its words."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    token_delay_s: float = 0.0
    finish_reason: str = ""
    """Empty: ``tool_calls`` where there are some, else ``stop``."""
    reply: Mapping[str, Any] | None = None
    """The assistant's message, in place of the tokens."""
    body: object = None
    """The whole body of the reply: bytes and text as they are, all else as JSON."""
    events: Sequence[Event] | None = None
    """A stream, event by event, in place of the tokens."""
    prompt_tokens: int | None = None
    """None: UTF-8 bytes / 4 of messages and tools."""
    completion_tokens: int | None = None
    """None: one for each token; of a text or a message, UTF-8 bytes / 4."""
    cached_tokens: int | None = 0
    """None is sent as null."""
    reports_usage: bool = True
    reasoning: tuple[str, ...] = ()
    """Sent as ``reasoning_content`` before the tokens, without delay between them."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """llama.cpp's ``timings`` of the closing chunk."""
    fault: Fault = "none"

    @property
    def pieces(self) -> tuple[str, ...]:
        """The tokens of the stream."""
        return (self.tokens,) if isinstance(self.tokens, str) else self.tokens

    @property
    def text(self) -> str:
        """The whole reply."""
        return "".join(self.pieces)

    def whole(self) -> Message:
        """The assistant's message."""
        if self.reply is not None:
            return {"role": "assistant", **self.reply}
        thought = {"reasoning_content": "".join(self.reasoning)} if self.reasoning else {}
        return {"role": "assistant", "content": self.text, **thought}

    def finish(self) -> str:
        """Why the reply ends."""
        return self.finish_reason or ("tool_calls" if (self.reply or {}).get("tool_calls") else "stop")

    def usage(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the server counts."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        if prompt is None:
            sent = [_text(each.get("content")) for each in body.get("messages", ())] or [str(body.get("prompt"))]
            prompt = sum(count_by_bytes([*sent, *(json.dumps(tool) for tool in body.get("tools") or ())]))
        if completion is None and not isinstance(self.tokens, str) and self.reply is None:
            completion = len(self.tokens)
        elif completion is None:
            functions = [call["function"] for call in (self.reply or {}).get("tool_calls") or ()]
            content = _text(self.whole().get("content"))
            completion = sum(count_by_bytes([content, *(each["name"] + each["arguments"] for each in functions)]))
        details = None if self.cached_tokens is None else {"cached_tokens": self.cached_tokens}
        counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return {**counts, "prompt_tokens_details": details}


Answer = Script | str | Mapping[str, Any] | bytes | int
"""A script, or in its place a text, an assistant's message, a whole body, a status."""
Reply = Callable[[Body], Answer]


def script_of(answer: Answer) -> Script:
    """The script that an answer is short for."""
    if isinstance(answer, str):
        return Script(answer)
    if isinstance(answer, bytes):
        return Script(body=answer)
    if isinstance(answer, int):
        return Script(status=answer)
    script = answer if isinstance(answer, Script) else Script(reply=answer)
    return replace(script, status=500) if script.fault == "status" and script.status == 200 else script


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def text_of(body: Mapping[str, Any], role: str | None = None) -> str:
    """The messages of a request, of one role or of all, with a line break between them."""
    return "\n".join(str(each["content"]) for each in body["messages"] if role in (None, each["role"]))


def words_of(body: Mapping[str, Any]) -> int:
    """The words of a request's messages."""
    return sum(len(str(each["content"]).split()) for each in body["messages"])


# ------------------------------------------------------------------ scripts that are made of others


def good(body: Body) -> Script:
    """A right answer as a reader gives it, with two tokens counted for each word."""
    return Script(events=[chunk({"content": ANSWER}), chunk({}, "stop"), usage(words_of(body) * 2), DONE])


def says(*events: Event) -> Reply:
    """The same events of a stream for every request."""
    return lambda body: Script(events=events)


def refuses(
    status: int, body: object, when: Callable[[Body], bool] = lambda _: True, retry_after: str | None = None
) -> Reply:
    """An error for some requests, a good reply to the others."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda asked: Script(status=status, body=body, headers=headers) if when(asked) else good(asked)


def first_then(count: int, bad: Reply, then: Reply = good) -> Reply:
    """One reply to the first chats, another afterwards."""
    return lambda body: (bad if body.number < count else then)(body)


def chunk(delta: Mapping[str, Any], finish: object = None, **more: object) -> bytes:
    """One chunk of a streamed chat completion."""
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


def usage(prompt: object, completion: object = 5) -> bytes:
    """The closing chunk with token counts."""
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


def event(value: object) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


# ------------------------------------------------------------------ vectors and scores


def embed(text: str) -> list[float]:
    """Hashed words, of length 1: texts that share rare words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        vector[number % DIMENSIONS] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0, *vector[1:]]


def ranking(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Documents by the share of the query's words that they hold, best first; ties in the order of the request."""
    words = set(str(body.get("query", "")).lower().split())
    shares = [len(words & set(str(each).lower().split())) / max(1, len(words)) for each in body.get("documents", ())]
    order = sorted(range(len(shares)), key=lambda index: -shares[index])[: body.get("top_n")]
    return [{"index": index, "relevance_score": shares[index]} for index in order]
