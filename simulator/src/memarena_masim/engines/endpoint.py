"""Client of an OpenAI-compatible endpoint: bounded concurrency, retries that respect Retry-After, one-line errors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
from pydantic import BaseModel, Field, JsonValue, ValidationError
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
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """A completion. ``cut``: it ran into its length limit."""

    text: str
    cut: bool


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(0, ge=0, lt=1 << 32)
    completion_tokens: int = Field(0, ge=0, lt=1 << 32)


class _Completion(BaseModel):
    """What is read of a chat completion."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


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
        # The OpenAI client takes about a millisecond of the event loop per call, aiohttp a fifth of that: with eight
        # requests in flight it is what decides whether the endpoint is kept busy.
        self._url = config.url.rstrip("/") + "/chat/completions"
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {config.api_key or 'none'}", "Accept-Encoding": "identity"},
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            proxy=_proxy_for(config.url),
            auto_decompress=False,
        )
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
            MasimError: the endpoint is of no use at all: wrong key, unknown model, or nobody answers any more.
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
            body["response_format"] = _format(schema)
        self._count("requests")
        try:
            async with asyncio.timeout(self.config.timeout_s):
                # A redirect would take the key and the prompts elsewhere.
                async with self._session.post(self._url, json=body, allow_redirects=False) as response:
                    data = await _bounded(response)
        except TimeoutError as error:
            self._count("timeouts")
            raise _TransientError(f"no reply within {self.config.timeout_s:g} s") from error
        except aiohttp.InvalidURL as error:
            raise MasimError(f"--endpoint {self.config.url}: not a URL that can be called") from error
        except aiohttp.ClientError as error:
            self._count("connection_errors")
            raise _TransientError(f"no connection: {error}") from error
        if response.status < HTTPStatus.MULTIPLE_CHOICES:
            return self._read(data)
        if response.status < HTTPStatus.BAD_REQUEST:
            target = response.headers.get("Location", "nowhere")[:200]
            raise MasimError(f"--endpoint {self.config.url}: redirects to {target}, which is not followed")
        if with_schema and response.status in _REFUSED:
            return await self._without_schema(messages, max_tokens, schema)
        raise self._failure(response.status, response.headers, data)

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

    def _failure(self, status: int, headers: Mapping[str, str], data: bytes) -> Exception:
        self._count(f"status_{status}")
        said = f"{status} {_error_message(data)}".strip()
        if status in (401, 403):
            return MasimError(f"--endpoint {self.config.url}: {said}; a key is taken from the variable --api-key-env")
        if status == 404:
            return MasimError(f"--endpoint {self.config.url}, --model {self.config.model}: {said}")
        if status in (408, 429) or status >= 500:
            wait_s = _retry_after_s(headers)
            if wait_s is not None:
                wait_s = min(wait_s, self.config.longest_wait_s)
                self._open_from_s = max(self._open_from_s, time.monotonic() + wait_s)
            return _TransientError(said, wait_s)
        return NoReplyError(said)

    def _read(self, data: bytes) -> Reply:
        """The text of a completion; a server may send anything, so nothing of it is trusted."""
        try:
            completion = _Completion.model_validate_json(data)
        except ValidationError as error:
            self._count("malformed_replies")
            raise _TransientError("the reply is no chat completion") from error
        if completion.usage is None:
            self._count("replies_without_usage")
        else:
            self.tokens["prompt"] += completion.usage.prompt_tokens
            self.tokens["completion"] += completion.usage.completion_tokens
        choice = completion.choices[0]
        return Reply(choice.message.content or "", choice.finish_reason == "length")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def take_counts(self) -> dict[str, JsonValue]:
        """Calls and tokens since this was last asked for."""
        found: dict[str, JsonValue] = {"calls": dict(sorted(self.counts.items())), "tokens": dict(self.tokens)}
        self.counts, self.tokens = {}, {"prompt": 0, "completion": 0}
        return found


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The body of a reply. Raises _TransientError for one that is compressed or too long."""
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
        raise _TransientError("the server sent a compressed body, which was not asked for")
    parts, size = [], 0
    while part := await response.content.readany():
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise _TransientError(f"the server's reply is longer than {_MOST_BYTES:,} bytes")
    return b"".join(parts)


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL. Read once: aiohttp would read it again for every request."""
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _format(schema: Mapping[str, object]) -> dict[str, object]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": dict(schema)}}


def _error_message(data: bytes) -> str:
    """First line of what a server says of its error: OpenAI's form, or whatever else it sent."""
    said: object = data.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        said = json.loads(data)
        if isinstance(said, dict):
            said = said.get("error", said)
        if isinstance(said, dict):
            said = said.get("message", said)
    lines = str(said).strip().splitlines()
    return lines[0][:200] if lines else ""


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds of the Retry-After header (RFC 9110, 10.2.3), or of its finer kin; None if there is none."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        given = headers.get(name)
        if given is None:
            continue
        try:
            return max(0.0, float(given) / scale)
        except ValueError:
            return _until_date_s(given)
    return None


def _until_date_s(given: str) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  (rare form of the header)

    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
