"""Watching a server-sent event stream as it passes: when content came, what it said, which events to hold back."""

from __future__ import annotations

import json
import re

from pydantic import JsonValue

from memarena.gateway.calls import OpenCall, UpstreamError

_EVENT_END = re.compile(rb"\r?\n\r?\n")
_DATA = re.compile(rb"^data:[ ]?(.*?)\r?$", re.MULTILINE)
_DONE = b"[DONE]"


class StreamWatch:
    """Takes the bytes of one streamed completion, fills in the call, and gives back what the caller may see.

    ``hide_usage`` holds back the closing chunk with token counts, which the caller did not ask for. An opening chunk
    that says nothing but the role goes out together with the first one that says something: servers send it together
    with the first token, and a caller in this process that began to work on it would disturb the clock of TTFT.
    """

    def __init__(self, call: OpenCall, *, hide_usage: bool) -> None:
        self.failure: UpstreamError | None = None
        self._call = call
        self._hide_usage = hide_usage
        self._pending = b""
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._finished = False
        self._answered = False
        self._spoken = False
        self._held: list[bytes] = []

    def feed(self, chunk: bytes, at_ns: int) -> bytes:
        """Whole events that are to be passed on. ``at_ns``: monotonic time at which the chunk arrived.

        An event that is no JSON or reports an error of the server sets ``failure``; what came before it is passed on,
        and nothing after it.
        """
        if self._call.first_byte_ns is None:
            self._call.first_byte_ns = self._call.since_forwarded(at_ns)
        data = self._pending + chunk
        passed: list[bytes] = []
        start = 0
        try:
            for end in _EVENT_END.finditer(data):
                event = data[start : end.end()]
                start = end.end()
                if self._watch(event, at_ns):
                    passed.append(event)
        except UpstreamError as error:
            self.failure = error
        self._pending = data[start:]
        return self._past_opening(passed)

    def end(self, at_ns: int) -> bytes:
        """The upstream's stream is over. Raises :class:`UpstreamError` if the reply was not complete."""
        rest, self._pending = self._pending, b""
        passed = rest if rest.strip() and self._watch(rest, at_ns) else b""
        if not self._finished:
            raise UpstreamError("the server's stream ended before the reply was complete")
        self._spoken = True
        return self._past_opening([passed])

    def _past_opening(self, passed: list[bytes]) -> bytes:
        if not self._spoken:
            self._held += passed
            return b""
        held, self._held = self._held, []
        return b"".join((*held, *passed))

    def settle(self) -> None:
        """Write what was said into the call, however the stream ended."""
        self._call.output = "".join(self._texts)
        self._call.reasoning = "".join(self._reasoning)

    def _watch(self, event: bytes, at_ns: int) -> bool:
        """Note what an event says; whether it may pass."""
        data = b"\n".join(_DATA.findall(event))
        if not data:
            return True
        if data == _DONE:
            # A server that broke may still close its stream in good order.
            if not self._answered:
                raise UpstreamError("the server's stream said that it is done and held no reply")
            self._finished = self._spoken = True
            self._call.done_ns = self._call.since_forwarded(at_ns)
            return True
        try:
            chunk: JsonValue = json.loads(data)
        except ValueError as error:
            raise UpstreamError(f"the server sent a chunk that is no JSON: {data[:80]!r}") from error
        if not isinstance(chunk, dict):
            raise UpstreamError(f"the server sent a chunk that is no JSON object: {data[:80]!r}")
        if chunk.get("error"):
            raise UpstreamError(f"the server reported an error in its stream: {error_message(chunk)}")
        usage = chunk.get("usage")
        self._call.take_usage(usage)
        self._call.take_timings(chunk.get("timings"))
        choices = chunk.get("choices") or []
        if not isinstance(choices, list):
            raise UpstreamError(f"the server sent a chunk whose choices are no list: {data[:80]!r}")
        for choice in choices:
            if not isinstance(choice, dict):
                raise UpstreamError(f"the server sent a choice that is no JSON object: {data[:80]!r}")
            self._take(choice, at_ns)
        if choices:
            return True
        return not (self._hide_usage and usage)

    def _take(self, choice: dict[str, JsonValue], at_ns: int) -> None:
        if choice.get("finish_reason"):
            self._finished = True
        delta = choice.get("delta")
        # Text, thinking or tool calls; an empty reply is one where the server says why it ended.
        says = isinstance(delta, dict) and any(delta[key] for key in delta if key != "role")
        self._answered = self._answered or self._finished or says or bool(choice.get("text"))
        if self._finished or not isinstance(delta, dict) or says:
            self._spoken = True
        text = delta.get("content") if isinstance(delta, dict) else choice.get("text")
        if isinstance(text, str) and text:
            offset = self._call.since_forwarded(at_ns)
            if self._call.first_content_ns is None:
                self._call.first_content_ns = offset
            self._call.last_content_ns = offset
            self._texts.append(text)
        thought = reasoning_of(delta)
        if thought:
            if self._call.first_reasoning_ns is None:
                self._call.first_reasoning_ns = self._call.since_forwarded(at_ns)
            self._reasoning.append(thought)


def reasoning_of(message: JsonValue) -> str:
    """Text that a server sets apart as thinking, in a message or a delta of one."""
    if isinstance(message, dict):
        for key in ("reasoning_content", "reasoning"):
            if isinstance(text := message.get(key), str):
                return text
    return ""


def error_message(body: JsonValue) -> str:
    """The words of an error reply in any of the usual forms, on one line."""
    found: JsonValue = body
    if isinstance(found, dict):
        found = found.get("error", found.get("message", found.get("detail", found)))
    if isinstance(found, dict):
        found = found.get("message", found)
    text = found if isinstance(found, str) else json.dumps(found)
    return " ".join(text.split())[:500]
