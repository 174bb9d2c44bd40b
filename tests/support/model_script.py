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
"""Part of a stream: bytes to send, seconds to wait, or a function whose bytes are sent until the caller hangs up."""

DIMENSIONS = 64
DONE = b"data: [DONE]\n\n"
ANSWER = '{"answer": "Tuesday", "reason": "it says so"}'

_WORD = re.compile(r"\w+")


class Body(dict[str, Any]):
    """A request's body. ``number`` counts the server's chats, or the requests of another path, from 0."""

    number = -1


class UnknownPromptError(ValueError):
    """A prompt that the rules of a scripted model do not cover; the message is one line, sent with status 422."""


@dataclass(frozen=True)
class Script:
    """One reply. Delays count from the time at which the request was read."""

    tokens: tuple[str, ...] | str = ('{"answer": "', "as scripted", '", "reason": "', "it is in the script", '"}')
    status: int = 200
    message: str = "as scripted"
    """Message of an error."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    token_delay_s: float = 0.0
    finish_reason: str = ""
    """Empty: ``tool_calls`` if there are any, else ``stop``."""
    reply: Mapping[str, Any] | None = None
    """The assistant's message; replaces the tokens."""
    body: object = None
    """Complete body of the reply: bytes and text verbatim, other values as JSON."""
    events: Sequence[Event] | None = None
    """A stream, event by event; replaces the tokens."""
    prompt_tokens: int | None = None
    """None: UTF-8 bytes / 4 of messages and tools."""
    completion_tokens: int | None = None
    """None: one for each token; for a text or a message, UTF-8 bytes / 4."""
    cached_tokens: int | None = 0
    """None: sent as null."""
    reports_usage: bool = True
    reasoning: tuple[str, ...] = ()
    """Sent as ``reasoning_content`` before the tokens, without delay between them."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """llama.cpp's ``timings`` of the closing chunk."""
    fault: Fault = "none"

    @property
    def pieces(self) -> tuple[str, ...]:
        """Return the tokens of the stream."""
        return (self.tokens,) if isinstance(self.tokens, str) else self.tokens

    @property
    def text(self) -> str:
        """Return the complete text of the reply."""
        return "".join(self.pieces)

    def whole(self) -> Message:
        """Return the assistant's message."""
        if self.reply is not None:
            return {"role": "assistant", **self.reply}
        thought = {"reasoning_content": "".join(self.reasoning)} if self.reasoning else {}
        return {"role": "assistant", "content": self.text, **thought}

    def finish(self) -> str:
        """Return the finish reason."""
        return self.finish_reason or ("tool_calls" if (self.reply or {}).get("tool_calls") else "stop")

    def usage(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the token counts that the server reports."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        if prompt is None:
            texts = [_text(each.get("content")) for each in body.get("messages", ())] or [str(body.get("prompt"))]
            prompt = sum(count_by_bytes([*texts, *(json.dumps(tool) for tool in body.get("tools") or ())]))
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
"""A script, or a short form of one: a text, an assistant's message, a complete body (bytes), a status."""
Reply = Callable[[Body], Answer]


def script_of(answer: Answer) -> Script:
    """Return the script for a short form."""
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
    """Return the messages of a request, of one role or all, joined by line breaks."""
    return "\n".join(str(message["content"]) for message in body["messages"] if role in (None, message["role"]))


def words_of(body: Mapping[str, Any]) -> int:
    """Return the number of words in a request's messages."""
    return sum(len(str(message["content"]).split()) for message in body["messages"])


# ------------------------------------------------------------------ scripts that are made of others


def good(body: Body) -> Script:
    """Return a valid answer of a reader, which counts two tokens for each word."""
    return Script(events=[chunk({"content": ANSWER}), chunk({}, "stop"), usage(words_of(body) * 2), DONE])


def says(*events: Event) -> Reply:
    """Return a script that sends the same events for every request."""
    return lambda body: Script(events=events)


def refuses(
    status: int, body: object, when: Callable[[Body], bool] = lambda _: True, retry_after: str | None = None
) -> Reply:
    """Return a script that sends an error for some requests, and a valid reply for the others."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda request: Script(status=status, body=body, headers=headers) if when(request) else good(request)


def first_then(count: int, bad: Reply, then: Reply = good) -> Reply:
    """Return a script with one reply for the first ``count`` chats, and another afterwards."""
    return lambda body: (bad if body.number < count else then)(body)


def chunk(delta: Mapping[str, Any], finish: object = None, **more: object) -> bytes:
    """Return one chunk of a streamed chat completion."""
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


def usage(prompt: object, completion: object = 5) -> bytes:
    """Return the closing chunk with token counts."""
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


def event(value: object) -> bytes:
    """Return one server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


# ------------------------------------------------------------------ vectors and scores


def embed(text: str) -> list[float]:
    """Return a unit vector of hashed words: texts that share rare words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        vector[number % DIMENSIONS] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0, *vector[1:]]


def ranking(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return documents by the share of the query's words in them, best first; ties keep the request's order."""
    words = set(str(body.get("query", "")).lower().split())
    shares = [len(words & set(str(each).lower().split())) / max(1, len(words)) for each in body.get("documents", ())]
    order = sorted(range(len(shares)), key=lambda index: -shares[index])[: body.get("top_n")]
    return [{"index": index, "relevance_score": shares[index]} for index in order]
