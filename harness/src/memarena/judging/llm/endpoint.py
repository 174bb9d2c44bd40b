"""The server of a judge's model: how it is asked, and how patiently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from memarena_answering.servers.asking import ChatServer, UnusableServerError
from memarena_answering.servers.chat import ChatReply
from pydantic import JsonValue

from memarena.judging.errors import JudgeError

BYTES_PER_TOKEN = 3
"""Tokens of a text that a server has not counted, taken on the high side."""


@dataclass(frozen=True)
class Patience:
    """How long and how often a judge is asked before it is given up. Seconds."""

    tries: int = 5
    timeout_s: float = 60.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


@dataclass(frozen=True)
class Message:
    """One message of a conversation with a judge."""

    role: Literal["system", "user", "assistant"]
    content: str


class Endpoint:
    """A judge's server. Use as an asynchronous context manager; safe for many calls at once in one event loop."""

    def __init__(self, url: str, api_key: str | None, timeout_s: float) -> None:
        """Raises JudgeError if ``url`` is none."""
        try:
            self._server = ChatServer(url, api_key, timeout_s)
        except ValueError as error:
            raise JudgeError(str(error)) from error
        self.url = self._server.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    async def complete(
        self,
        model: str,
        messages: Sequence[Message],
        schema: dict[str, JsonValue],
        *,
        max_tokens: int,
        temperature: float,
        seed: int | None,
    ) -> ChatReply:
        """Ask once, as :meth:`ChatServer.complete`. Raises JudgeError where no call can ever succeed."""
        listed = [{"role": message.role, "content": message.content} for message in messages]
        body: dict[str, object] = {"model": model, "messages": listed, "temperature": temperature}
        if seed is not None:
            body["seed"] = seed
        try:
            return await self._server.complete(body, max_tokens, "verdict", schema)
        except UnusableServerError as error:
            raise JudgeError(str(error)) from error

    def key_refused(self, reported: str) -> JudgeError:
        """What ends a judging whose key the server does not take."""
        return JudgeError(str(self._server.key_refused(reported)))
