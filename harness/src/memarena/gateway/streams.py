"""Watches a stream of server-sent events: times of content, its text, and events to withhold from the caller."""

from __future__ import annotations

import codecs
import re

from memarena_answering.servers.normal_form import Reading
from memarena_answering.servers.replies import MAX_EVENT_BYTES, UpstreamError, error_message, parse_json
from pydantic import JsonValue

from memarena.gateway.calls import OpenCall
from memarena.gateway.thinking import AnswerStart

TEXT_BYTES_PER_TOKEN = 64
LEAST_TEXT_BYTES = 16 << 10
"""A reply may have ``max_tokens`` times ``TEXT_BYTES_PER_TOKEN`` bytes, and at least this many; if it is longer, the
server is taken not to stop."""

_EVENT_END = re.compile(rb"\r?\n(?:\r?\n)+")
"""Any number of blank lines, so that a server that sends nothing else does not cost work for each line."""
_DATA = re.compile(rb"^data:[ ]?(.*?)\r?$", re.MULTILINE)
_OTHER_FIELD = re.compile(rb"^(?!data:|:|\r?$)", re.MULTILINE)
_ERROR_EVENT = re.compile(rb"^event:[ ]?error\r?$", re.MULTILINE)
_DONE = b"[DONE]"


class StreamWatch:
    """Takes the bytes of one streamed completion, fills in the call, and returns the bytes for the caller.

    ``hide_usage`` withholds the closing chunk with token counts, which the caller did not request. An opening chunk
    that has only the role is sent together with the first chunk with content: servers send it together
    with the first token, and a caller in this process that began to work on it would distort TTFT.
    """

    def __init__(self, call: OpenCall, *, hide_usage: bool, max_tokens: int | None = None) -> None:
        self.failure: UpstreamError | None = None
        self._call = call
        self._hide_usage = hide_usage
        self._most_bytes = None if max_tokens is None else max(LEAST_TEXT_BYTES, TEXT_BYTES_PER_TOKEN * max_tokens)
        self._text_bytes = 0
        self._pending = b""
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._start = AnswerStart()
        self._finished = False
        self._spoken = False  # whether content has arrived, so that events are passed on
        self._held: list[bytes] = []

    def feed(self, chunk: bytes, at_ns: int) -> bytes:
        """Return the complete events to pass on. ``at_ns``: monotonic time at which the chunk arrived.

        An event that is no JSON or reports an error of the server sets ``failure``; events before it are passed on,
        those after it are not.
        """
        if self._call.first_byte_ns is None:
            self._call.first_byte_ns = self._call.since_forwarded(at_ns)
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        data = self._pending + chunk
        passed: list[bytes] = []
        start = 0
        try:
            for end in _EVENT_END.finditer(data):
                event = data[start : end.end()]
                start = end.end()
                passed.append(self._watch(event, at_ns))
            if len(data) - start > MAX_EVENT_BYTES:
                raise UpstreamError(f"the server sent an event of more than {MAX_EVENT_BYTES:,} bytes")
        except UpstreamError as error:
            self.failure = error
        self._pending = data[start:]
        return self._past_opening(passed)

    def end(self, at_ns: int) -> bytes:
        """Note the end of the upstream's stream. Raises :class:`UpstreamError` if the reply was not complete."""
        remainder, self._pending = self._pending, b""
        passed = self._watch(remainder, at_ns) if remainder.strip() else b""
        if not self._finished:
            raise UpstreamError("the server's stream ended before the reply was complete")
        self._spoken = True
        return self._past_opening([passed])

    def _past_opening(self, passed: list[bytes]) -> bytes:
        """Return the events to pass on; hold them back until the first with content."""
        if not self._spoken:
            self._held += passed
            return b""
        chunks, self._held = self._held, []
        return b"".join((*chunks, *passed))

    def finish(self) -> None:
        """Write the text of the reply into the call, even if the stream ended early."""
        self._call.output = "".join(self._texts)
        self._call.reasoning = "".join(self._reasoning)

    def _watch(self, event: bytes, at_ns: int) -> bytes:
        """Note the content of an event; return the bytes of it that the caller gets, in the usual form."""
        # Most events are one line, ``data: {…}``, and need no search for their lines.
        plain = event.startswith(b"data: {") and event.count(b"\n") == 2 and event.endswith(b"}\n\n")
        data = event[6:-2] if plain else b"\n".join(_DATA.findall(event))
        odd = not plain and _OTHER_FIELD.search(event) is not None
        if odd and _ERROR_EVENT.search(event):
            raise UpstreamError(f"the server reported an error in its stream: {_words_of(data)}")
        if not data:
            return b"" if odd else event
        if data == _DONE:
            # A server that failed may still close its stream properly.
            if not self._finished:
                raise UpstreamError("the server's stream said that it is done and not why the reply ended")
            self._spoken = True
            self._call.done_ns = self._call.since_forwarded(at_ns)
            return b"data: [DONE]\n\n" if odd else event
        chunk = Reading(data, "a chunk")
        if chunk.body.get("error"):
            raise UpstreamError(f"the server reported an error in its stream: {error_message(chunk.body)}")
        choices, usage = chunk.choices("delta"), chunk.usage()
        self._call.take_usage(usage)
        self._call.take_timings(chunk.body.get("timings"))
        for choice in choices:
            self._take(choice, at_ns)
        if not choices and self._hide_usage and usage:
            return b""
        return b"data: " + chunk.dump() + b"\n\n" if odd or chunk.changed else event

    def _take(self, choice: dict[str, JsonValue], at_ns: int) -> None:
        """Note the content of a choice: text, thinking, refusal and why it ended."""
        if finish := choice.get("finish_reason"):
            self._finished = True
            self._call.finish_reason = str(finish)
        delta = choice.get("delta")
        # Text, thinking or tool calls; an empty reply counts if the server states why it ended.
        says = isinstance(delta, dict) and any(delta[key] for key in delta if key != "role")
        if self._finished or not isinstance(delta, dict) or says:
            self._spoken = True
        text = delta.get("content") if isinstance(delta, dict) else choice.get("text")
        if isinstance(text, str) and text:
            self._take_text(text, at_ns)
        thought = reasoning_of(delta)
        if thought:
            if self._call.first_reasoning_ns is None:
                self._call.first_reasoning_ns = self._call.since_forwarded(at_ns)
            self._reasoning.append(thought)
            self._bound(thought)
        if isinstance(delta, dict) and delta.get("refusal"):
            self._call.refused_to_answer = True

    def _take_text(self, text: str, at_ns: int) -> None:
        """Note a piece of text and its time."""
        offset = self._call.since_forwarded(at_ns)
        self._start.feed(text, offset)
        self._call.first_content_ns = self._start.answer_ns
        if self._call.first_reasoning_ns is None:
            self._call.first_reasoning_ns = self._start.reasoning_ns
        self._call.last_content_ns = offset
        self._texts.append(text)
        self._bound(text)

    def _bound(self, text: str) -> None:
        """Count the bytes of a text. Raises :class:`UpstreamError` if the reply has become too long."""
        self._text_bytes += len(text.encode("utf-8", "surrogatepass"))
        if self._most_bytes is not None and self._text_bytes > self._most_bytes:
            raise UpstreamError(f"the server does not stop: more than {self._most_bytes:,} bytes of text")


def reasoning_of(message: JsonValue) -> str:
    """Return the text that a server marks as thinking, in a message or a delta."""
    if isinstance(message, dict):
        for key in ("reasoning_content", "reasoning"):
            if isinstance(text := message.get(key), str):
                return text
    return ""


def _words_of(data: bytes) -> str:
    body = parse_json(data)
    return error_message(data[:500].decode("utf-8", "replace") if body is None else body) or "without a word"
