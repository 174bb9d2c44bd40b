"""Implements the RPC Answer for all memories: builds a prompt from items, and streams the reader's reply.

The reader is the language model that answers; it is always called through the harness's gateway, which measures it.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Generator, Iterator, Sequence
from typing import Literal, cast

import grpc
from memarena_answering import (
    Completion,
    ContextItem,
    PromptStyle,
    PromptTooLongError,
    ReaderCallError,
    ReaderClient,
    ReadingPlan,
    TextDelta,
    build_prompt,
    count_by_bytes,
    preload,
)
from memarena_proto import memory_backend_pb2 as pb

from memarena_backend.calls import Call
from memarena_backend.errors import CallError, invalid_argument, unavailable
from memarena_backend.reader_prompt import asker_of, framed
from memarena_backend.records import Item, ModelAccess, ModelRole, Query

REPLY_TIMEOUT_S = 600.0
"""Timeout of a reply if the call itself has no deadline."""

MAX_GATEWAYS = 8
"""Gateways whose connections are kept, least recently used dropped first; each run of a harness has another gateway."""

_STYLES = {
    pb.PROMPT_STYLE_UNSPECIFIED: PromptStyle.TEXT_SESSIONS,
    pb.PROMPT_STYLE_TEXT_SESSIONS: PromptStyle.TEXT_SESSIONS,
    pb.PROMPT_STYLE_JSON_CONTEXT: PromptStyle.JSON_CONTEXT,
}
_THINKING: dict[int, Literal["default", "on", "off"]] = {
    pb.THINKING_UNSPECIFIED: "default",
    pb.THINKING_ON: "on",
    pb.THINKING_OFF: "off",
}
_FINISH: dict[str, pb.FinishReason.ValueType] = {
    "stop": pb.FINISH_REASON_STOP,
    "length": pb.FINISH_REASON_LENGTH,
    "unknown": pb.FINISH_REASON_UNSPECIFIED,
}


def parse_reading(request: pb.AnswerRequest, models: ModelAccess | None) -> ReadingPlan:
    """Return how the reader is to be asked. Raises CallError INVALID_ARGUMENT that names the field (ANS-5)."""
    if not request.HasField("reading"):
        raise invalid_argument("reading", "is required")
    if models is None:
        raise invalid_argument("search.model_access", "is required: without a reader there is no answer")
    reading = request.reading
    if not reading.model:
        raise invalid_argument("reading.model", "is required")
    model = models.model(reading.model)
    if model is None or model.role is not ModelRole.READER:
        raise invalid_argument(
            "reading.model", f"{reading.model!r} is no reader among the models of search.model_access"
        )
    if reading.max_tokens < 1:
        raise invalid_argument("reading.max_tokens", "expected at least 1")
    if not (math.isfinite(reading.temperature) and reading.temperature >= 0):
        raise invalid_argument("reading.temperature", f"expected a number of at least 0, got {reading.temperature}")
    return ReadingPlan(
        model=reading.model,
        max_tokens=reading.max_tokens,
        temperature=reading.temperature,
        seed=reading.seed,
        # An enum value of a later contract version counts as unspecified (VER-5).
        style=_STYLES.get(reading.prompt_style, PromptStyle.TEXT_SESSIONS),
        thinking=_THINKING.get(reading.thinking, "default"),
        context_window_tokens=model.context_window_tokens,
        max_context_tokens=request.search.max_context_tokens,
        no_system_role=model.no_system_role,
        counts_tokens=model.counts_tokens,
    )


class Answerer:
    """Asks readers; keeps its connections to gateways."""

    def __init__(self) -> None:
        preload()
        self._mutex = threading.Lock()
        self._clients: dict[str, ReaderClient] = {}

    def warm_up(self, models: ModelAccess) -> None:
        """Get ready for a gateway before an answer is timed. Opens no connection."""
        self._client(models.base_url).warm_up()

    def close(self) -> None:
        """Close the connections to all gateways."""
        with self._mutex:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def answer(
        self, query: Query, asked_at: str, items: Sequence[Item], plan: ReadingPlan, models: ModelAccess, call: Call
    ) -> Iterator[pb.AnswerEvent]:
        """Yield the reply as it arrives: any number of TextDelta, then Completed.

        Raises CallError; a failure never looks like an empty reply.
        """
        client = self._client(models.base_url)
        count = client.counter(models.token, plan.model) if plan.counts_tokens else count_by_bytes
        context = [ContextItem(item.text, item.time, item.score) for item in items]
        asker, plan = asker_of(query), framed(query, plan)
        remaining_s = call.remaining_s()
        try:
            prompt = build_prompt(context, query.text, asked_at, asker, plan, count)
            timeout_s = REPLY_TIMEOUT_S if remaining_s is None else remaining_s
            stream = cast(Generator[TextDelta | Completion], client.stream(prompt, plan, models.token, timeout_s))
            with contextlib.closing(stream):  # ends the model call at once if the caller has gone
                for part in stream:
                    yield _event(part)
        except PromptTooLongError as error:
            raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error), field="search.text") from error
        except ReaderCallError as error:
            call.check()
            raise _reader_failed(error) from error

    def _client(self, base_url: str) -> ReaderClient:
        with self._mutex:
            client = self._clients.pop(base_url, None) or ReaderClient(base_url)
            self._clients[base_url] = client  # last used, last in the order
            if len(self._clients) > MAX_GATEWAYS:
                self._clients.pop(next(iter(self._clients))).close()
            return client


def _event(part: TextDelta | Completion) -> pb.AnswerEvent:
    if not isinstance(part, Completion):
        return pb.AnswerEvent(text_delta=pb.TextDelta(text=part.text))
    usage = None
    if part.prompt_tokens is not None and part.completion_tokens is not None:
        usage = pb.TokenUsage(prompt_tokens=part.prompt_tokens, completion_tokens=part.completion_tokens)
    return pb.AnswerEvent(
        completed=pb.Completed(text=part.text, finish_reason=_FINISH[part.finish_reason], usage=usage)
    )


def _reader_failed(error: ReaderCallError) -> CallError:
    """Return the error of the call, by SPEC.md's error table of Answer.

    No response or a status of 500 and above is UNAVAILABLE, as a retry may succeed; any other is the backend's fault.
    """
    if error.status is None or error.status >= 500:
        return unavailable(f"the reader failed: {error}")
    return CallError(grpc.StatusCode.INTERNAL, f"the gateway refused the call: {error}")
