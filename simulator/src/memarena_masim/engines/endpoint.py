"""Calls a model behind a URL for the simulator: limits concurrency, counts calls, and gives up if it is unusable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena_answering.servers.asking import CallFailedError, ChatServer, asking_again
from pydantic import JsonValue

from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.prompting import Message
from memarena_masim.errors import MasimError

_LOST_IN_A_ROW, _REFUSED_IN_A_ROW = 1, 8
"""Consecutive failed requests per slot, lost and refused, after which the endpoint counts as unusable. A few sessions
may be too long for a model's window; if all are refused, something else is wrong."""
_YIELDS = 8


@dataclass(frozen=True, slots=True)
class Reply:
    """A completion. ``cut``: whether it reached its length limit."""

    text: str
    cut: bool


class NoReplyError(Exception):
    """A request got no reply after all retries; the message is one line."""


class Endpoint:
    """The model behind a URL. All calls go through one event loop; at most ``concurrency`` are in flight."""

    def __init__(self, config: EndpointConfig) -> None:
        self.config = config
        self._server = ChatServer(config.url, config.api_key, config.timeout_s, MasimError, self._count)
        self._slots = asyncio.Semaphore(config.concurrency)
        self._open_from_s = 0.0
        self._in_a_row = 0
        self.in_flight = 0
        self.counts: dict[str, int] = {}
        self.tokens: dict[str, int] = {"prompt": 0, "completion": 0}

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    async def complete(self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object]) -> Reply:
        """Return the reply to a chat.

        Raises:
            NoReplyError: this request got none: it was refused, or its attempts are used up.
            MasimError: the endpoint is unusable: wrong key, unknown model, or it no longer answers.
        """
        retrying = asking_again(self.config.attempts, self.config.longest_wait_s)
        try:
            reply: Reply = await retrying(self._attempt, messages, max_tokens, schema)
        except CallFailedError as error:
            if error.forbidden:
                raise self._server.key_refused(str(error)) from error
            self._in_a_row += 1
            per_slot = _REFUSED_IN_A_ROW if error.cause == "refused" else _LOST_IN_A_ROW
            if self._in_a_row >= max(3, per_slot * self.config.concurrency):
                raise MasimError(
                    f"--endpoint {self.config.url}: {self._in_a_row} requests in a row got no reply ({error}); "
                    "finished days are kept, the same command goes on"
                ) from error
            raise NoReplyError(str(error)) from error
        self._in_a_row = 0
        for _ in range(_YIELDS):  # let requests that wait for the slot be sent before this reply is processed
            await asyncio.sleep(0)
        return reply

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
        """Return the seconds until the server accepts requests again (Retry-After); 0 if it does now."""
        return max(0.0, self._open_from_s - time.monotonic())

    async def _call(self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, object]) -> Reply:
        body = {"model": self.config.model, "messages": list(messages), "temperature": self.config.temperature}
        try:
            chat = await self._server.complete(body, max_tokens, "reply", schema)
        except CallFailedError as failure:
            wait_s = min(failure.wait_s or 0.0, self.config.longest_wait_s)
            self._open_from_s = max(self._open_from_s, time.monotonic() + wait_s)
            raise
        if chat.prompt_tokens is None and chat.completion_tokens is None:
            self._count("replies_without_usage")
        self.tokens["prompt"] += chat.prompt_tokens or 0
        self.tokens["completion"] += chat.completion_tokens or 0
        return Reply(chat.text, chat.finish_reason == "length")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def take_counts(self) -> dict[str, JsonValue]:
        """Return calls and tokens since the last call of this function, and reset them."""
        figures: dict[str, JsonValue] = {"calls": dict(sorted(self.counts.items())), "tokens": dict(self.tokens)}
        self.counts, self.tokens = {}, {"prompt": 0, "completion": 0}
        return figures
