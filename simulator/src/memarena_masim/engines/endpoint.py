"""Client of an OpenAI-compatible endpoint: bounded concurrency, retries that respect Retry-After, one-line errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from memarena_answering.servers.chat import read_chat, schema_format
from memarena_answering.servers.replies import UpstreamError, api_url
from memarena_answering.servers.retry_after import retry_after_s
from memarena_answering.servers.sessions import new_session, post, proxy_for
from pydantic import JsonValue
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.prompting import Message
from memarena_masim.errors import MasimError

_REFUSED = (400, 413, 422)
"""The request itself was not liked: no use to send it again."""
_LOST_IN_A_ROW, _REFUSED_IN_A_ROW = 1, 8
"""Requests in a row without a reply, per slot, after which the endpoint counts as of no use. A few sessions may be too
long for a model's window; when all are refused, something else is wrong."""
_YIELDS = 8
_COUNTED_AS = {"timeout": "timeouts", "connection": "connection_errors"}


@dataclass(frozen=True, slots=True)
class Reply:
    """A completion. ``cut``: it ran into its length limit."""

    text: str
    cut: bool


class NoReplyError(Exception):
    """A request that got no reply, whatever was tried; the message is one line."""


class _TransientError(Exception):
    """An attempt that may succeed if it is made again. ``wait_s`` is what the server asked for."""

    def __init__(self, cause: str, wait_s: float | None = None) -> None:
        super().__init__(cause)
        self.wait_s = wait_s


class Endpoint:
    """The model behind a URL. All calls go through one event loop; at most ``concurrency`` are in flight."""

    def __init__(self, config: EndpointConfig) -> None:
        self.config = config
        if api_url(config.url) is None:
            raise MasimError(f"--endpoint {config.url}: not a URL that can be called")
        self._url = config.url.rstrip("/") + "/chat/completions"
        self._session = new_session(proxy=proxy_for(config.url))
        self._slots = asyncio.Semaphore(config.concurrency)
        self._open_from_s = 0.0
        self._takes_schema = True
        self._in_a_row = 0
        self.in_flight = 0
        self.counts: dict[str, int] = {}
        self.tokens: dict[str, int] = {"prompt": 0, "completion": 0}

    async def close(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    async def complete(self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object]) -> Reply:
        """The reply to a chat.

        Raises:
            NoReplyError: this request got none: refused, or its tries are used up.
            MasimError: the endpoint is of no use at all: wrong key, unknown model, or it does not answer any more.
        """
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_TransientError),
            stop=stop_after_attempt(self.config.attempts),
            wait=self._wait_s,
            reraise=True,
        )
        try:
            reply: Reply = await retrying(self._attempt, messages, max_tokens, schema)
        except (_TransientError, NoReplyError) as error:
            self._in_a_row += 1
            refused = isinstance(error, NoReplyError)
            per_slot = _REFUSED_IN_A_ROW if refused else _LOST_IN_A_ROW
            if self._in_a_row >= max(3, per_slot * self.config.concurrency):
                raise MasimError(
                    f"--endpoint {self.config.url}: {self._in_a_row} requests in a row got no reply ({error}); "
                    "finished days are kept, the same command goes on"
                ) from error
            raise NoReplyError(str(error)) from error
        self._in_a_row = 0
        for _ in range(_YIELDS):  # whoever waits for the slot sends before this reply is worked on
            await asyncio.sleep(0)
        return reply

    def _wait_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait_s if isinstance(error, _TransientError) else None
        if asked is not None:
            return min(asked, self.config.longest_wait_s)
        return wait_random_exponential(multiplier=1.0, max=self.config.longest_wait_s)(state)

    async def _attempt(self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object]) -> Reply:
        while True:
            async with self._slots:
                if not self._closed_for_s():
                    self.in_flight += 1
                    try:
                        return await self._call(messages, max_tokens, schema)
                    finally:
                        self.in_flight -= 1
            await asyncio.sleep(self._closed_for_s())

    def _closed_for_s(self) -> float:
        """Seconds until the server wants to hear from anybody again; 0 if it does now."""
        return max(0.0, self._open_from_s - time.monotonic())

    async def _call(self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object]) -> Reply:
        with_schema = self._takes_schema
        body: dict[str, object] = {
            "model": self.config.model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": self.config.temperature,
        }
        if with_schema:
            body["response_format"] = schema_format("reply", schema)
        self._count("requests")
        try:
            reply = await post(self._session, self._url, self.config.api_key or "none", body, self.config.timeout_s)
            if reply.status < HTTPStatus.MULTIPLE_CHOICES:
                return self._read(reply.body)
        except UpstreamError as error:
            self._count(_COUNTED_AS.get(error.cause, "malformed_replies"))
            late = error.cause == "timeout"
            raise _TransientError(f"no reply within {self.config.timeout_s:g} s" if late else str(error)) from error
        if reply.status < HTTPStatus.BAD_REQUEST:
            raise MasimError(f"--endpoint {self.config.url}: {reply.words()}")
        if with_schema and reply.status in _REFUSED:
            return await self._without_schema(messages, max_tokens, schema)
        raise self._failure(reply.status, reply.headers, reply.words())

    async def _without_schema(
        self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object]
    ) -> Reply:
        """Once more without a schema; if that is taken, the server does not know schemas and is not sent any more."""
        self._takes_schema = False
        try:
            reply = await self._call(messages, max_tokens, schema)
        except NoReplyError:
            self._takes_schema = True  # it was the request that it did not like
            raise
        self._count("schema_refused")
        return reply

    def _failure(self, status: int, headers: Mapping[str, str], words: str) -> Exception:
        self._count(f"status_{status}")
        reported = f"{status} {words[:200]}".strip()
        if status in (401, 403):
            return MasimError(
                f"--endpoint {self.config.url}: {reported}; a key is taken from the variable --api-key-env"
            )
        if status == 404:
            return MasimError(f"--endpoint {self.config.url}, --model {self.config.model}: {reported}")
        if status in (408, 429) or status >= 500:
            wait_s = retry_after_s(headers)
            if wait_s is not None:
                wait_s = min(wait_s, self.config.longest_wait_s)
                self._open_from_s = max(self._open_from_s, time.monotonic() + wait_s)
            return _TransientError(reported, wait_s)
        return NoReplyError(reported)

    def _read(self, data: bytes) -> Reply:
        """The text of a completion. Raises UpstreamError for what is none."""
        chat = read_chat(data)
        if chat.prompt_tokens is None and chat.completion_tokens is None:
            self._count("replies_without_usage")
        self.tokens["prompt"] += chat.prompt_tokens or 0
        self.tokens["completion"] += chat.completion_tokens or 0
        return Reply(chat.text, chat.finish_reason == "length")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def take_counts(self) -> dict[str, JsonValue]:
        """Calls and tokens since this was last asked for."""
        figures: dict[str, JsonValue] = {"calls": dict(sorted(self.counts.items())), "tokens": dict(self.tokens)}
        self.counts, self.tokens = {}, {"prompt": 0, "completion": 0}
        return figures
