"""Asks a reader through the harness's gateway: streams replies and counts tokens, each call with its own token."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from memarena_answering.model import Completion, Prompt, ReaderCallError, ReadingPlan, TextDelta, TokenCounter
from memarena_answering.servers.counts import count
from memarena_answering.servers.replies import MAX_EVENT_BYTES, Reply, UpstreamError, error_message

if TYPE_CHECKING:
    from memarena_answering.servers.door import Door

COUNT_TIMEOUT_S = 30.0
"""Timeout of counting tokens, which takes milliseconds."""
_KEEPALIVE_S = 5.0
_DONE = b"[DONE]"


def preload() -> None:
    """Import the HTTP client now, so that no timed call pays for it."""
    import memarena_answering.servers.door  # noqa: F401, PLC0415  (late on purpose)


def _request(prompt: Prompt, plan: ReadingPlan) -> dict[str, object]:
    body: dict[str, object] = {
        "model": plan.model,
        "messages": [{"role": message.role, "content": message.content} for message in prompt.messages],
        "max_tokens": plan.max_tokens,
        "temperature": plan.temperature,
        "seed": plan.seed,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if plan.thinking != "default":
        body["chat_template_kwargs"] = {"enable_thinking": plan.thinking == "on"}
    return body


class ReaderClient:
    """A client of one gateway, safe to share between threads; connections are kept and reused.

    Nothing is retried: a retry would hide a failure in the latency that is measured.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._lock = threading.Lock()
        self._door: Door | None = None

    def warm_up(self) -> Door:
        """Build the underlying client now. Opens no connection."""
        with self._lock:
            if self._door is None:
                from memarena_answering.servers.door import Door  # noqa: PLC0415  (only those who read pay)

                self._door = Door(_KEEPALIVE_S)
            return self._door

    def close(self) -> None:
        """Close kept connections. A later call opens new ones."""
        with self._lock:
            if self._door is not None:
                self._door.close()
                self._door = None

    def counter(self, token: str, model: str) -> TokenCounter:
        """Return a counter by the reader's tokenizer (POST {base_url}/tokenize). It raises :class:`ReaderCallError`."""

        def count_texts(texts: Sequence[str]) -> Sequence[int]:
            return self._count(token, model, texts) if texts else []

        return count_texts

    def _count(self, token: str, model: str, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text by the gateway. Raises :class:`ReaderCallError`."""
        body = {"model": model, "texts": list(texts)}
        try:
            reply = self.warm_up().ask(f"{self.base_url}/tokenize", token, body, timeout_s=COUNT_TIMEOUT_S)
        except UpstreamError as error:
            late = error.cause == "timeout"
            raise ReaderCallError(
                None, f"tokenize: no reply within {COUNT_TIMEOUT_S:g} s" if late else str(error)
            ) from error
        _check(reply)
        parsed = reply.parsed()
        counts = parsed.get("counts") if isinstance(parsed, dict) else None
        if not isinstance(counts, list) or len(counts) != len(texts) or not all(isinstance(n, int) for n in counts):
            raise ReaderCallError(None, f"tokenize: expected a list of {len(texts)} counts, got {str(parsed)[:80]}")
        return counts

    def stream(
        self, prompt: Prompt, plan: ReadingPlan, token: str, timeout_s: float
    ) -> Iterator[TextDelta | Completion]:
        """Ask the reader: deltas as they come, then one completion.

        ``timeout_s`` bounds the whole reply. Raises :class:`ReaderCallError` when the call fails, the stream breaks
        or it ends without saying that it is complete. Closing the iterator early ends the call.
        """
        door, url = self.warm_up(), f"{self.base_url}/chat/completions"
        try:
            with door.open(url, token, _request(prompt, plan), timeout_s=timeout_s) as (head, parts):
                if head.status >= 300:
                    _check(Reply(head.status, head.headers, b"".join(parts)))
                yield from _parse_events(_events(parts))
        except UpstreamError as error:
            late = error.cause == "timeout"
            raise ReaderCallError(
                None, f"the reply was not complete within {timeout_s:g} s" if late else str(error)
            ) from error


def _check(reply: Reply) -> None:
    """Raise :class:`ReaderCallError` for an error reply."""
    if reply.status >= 300:
        raise ReaderCallError(reply.status, reply.error_line() or "no words")


_FINISH: dict[str, Literal["stop", "length"]] = {"stop": "stop", "length": "length"}


def _events(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each event of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    Raises:
        UpstreamError: a line is longer than MAX_EVENT_BYTES.
    """
    pending, data = b"", []
    for part in parts:
        *lines, pending = (pending + part).split(b"\n")
        if len(pending) > MAX_EVENT_BYTES:
            raise UpstreamError(f"the server sent an event of more than {MAX_EVENT_BYTES:,} bytes")
        for line in lines:
            text = line.removesuffix(b"\r")
            if text.startswith(b"data:"):
                data.append(text[5:].removeprefix(b" "))
            elif not text and data:
                yield b"\n".join(data)
                data = []


def _parse_events(events: Iterable[bytes]) -> Iterator[TextDelta | Completion]:
    """Yield the deltas of a chat stream, then its completion. Raises :class:`ReaderCallError`."""
    texts: list[str] = []
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    for event in events:
        if event == _DONE:
            continue  # the end of the body lets the connection be used again
        try:
            chunk = json.loads(event)
        except (ValueError, RecursionError) as error:
            raise ReaderCallError(None, f"the stream broke: {error}") from error
        if not isinstance(chunk, dict):
            raise ReaderCallError(None, f"the stream holds something that is no chunk: {str(chunk)[:80]}")
        if chunk.get("error"):
            raise ReaderCallError(None, error_message(chunk))
        if isinstance(usage := chunk.get("usage"), dict):
            prompt_tokens, completion_tokens = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
        for choice in chunk.get("choices") or ():
            if not isinstance(choice, Mapping):
                raise ReaderCallError(None, f"the stream holds a choice that is no object: {str(choice)[:80]}")
            delta = choice.get("delta")
            if isinstance(delta, Mapping) and (text := delta.get("content")):
                if not isinstance(text, str):
                    raise ReaderCallError(None, f"the stream holds content that is no text: {str(text)[:80]}")
                texts.append(text)
                yield TextDelta(text)
            finish = str(choice.get("finish_reason") or finish or "") or None
    if finish is None:
        raise ReaderCallError(None, "the stream ended before the reply was complete")
    yield Completion("".join(texts), _FINISH.get(finish, "unknown"), prompt_tokens, completion_tokens)
