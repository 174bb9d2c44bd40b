"""One chat completion at an OpenAI-compatible server: schema where it takes one, errors by what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from memarena_answering.servers.chat import ChatReply, read_chat, schema_format
from memarena_answering.servers.replies import UpstreamError, api_url
from memarena_answering.servers.retry_after import retry_after_s
from pydantic import JsonValue

from memarena.judging.errors import JudgeError

if TYPE_CHECKING:
    from aiohttp import ClientSession

FailureCause = Literal["timeout", "connection", "rate_limit", "server_error", "refused", "malformed"]
_SHAPES = ("json_schema", "json_object", "text")
_LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the limit of a reply: newer servers refuse the first, older ones do not know the second."""
_TOO_MANY, _SERVER, _BAD_REQUEST = 429, 500, (400, 415, 422, 501)
_TRANSIENT = (408, 409, 425)
_KEY, _FORBIDDEN, _NOT_THERE = 401, 403, 404
_FIRST_ERROR = 400
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


class CallFailedError(Exception):
    """A call brought no completion.

    Args:
        cause: what went wrong.
        message: the same as one line for people.
        wait_s: how long the server asks to be left alone, None if it does not.
        forbidden: refused with HTTP 403, which may mean the key or only what this request says.
        in_reply: told in the body of a reply with status 200: nothing was delivered that could be billed.
    """

    def __init__(
        self,
        cause: FailureCause,
        message: str,
        wait_s: float | None = None,
        *,
        forbidden: bool = False,
        in_reply: bool = False,
    ) -> None:
        super().__init__(message)
        self.cause: FailureCause = cause
        self.wait_s = wait_s
        self.forbidden = forbidden
        self.in_reply = in_reply

    @property
    def may_pass(self) -> bool:
        """Whether asking again can help."""
        return self.cause != "refused"


class Endpoint:
    """A server. Use as an asynchronous context manager; safe for many calls at once in one event loop."""

    def __init__(self, url: str, api_key: str | None, timeout_s: float) -> None:
        """Raises JudgeError if ``url`` is none."""
        checked = api_url(url)
        if checked is None:
            raise JudgeError(f"--endpoint {url}: expected a URL such as https://openrouter.ai/api/v1")
        self.url = checked
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._session: ClientSession | None = None
        self._shape = 0
        self._limit = _LIMITS[0]

    async def __aenter__(self) -> Self:
        from memarena_answering.servers.sessions import new_session, proxy_for  # noqa: PLC0415 (only a model judge pays)

        self._session = new_session(proxy=proxy_for(self.url))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def complete(
        self,
        model: str,
        messages: Sequence[Message],
        schema: Mapping[str, JsonValue],
        *,
        max_tokens: int,
        temperature: float,
        seed: int | None,
    ) -> ChatReply:
        """Ask once. Where the server refuses a schema, ask for a JSON object, then for text, and remember that.

        Where it refuses the name of the limit, the other name is used from then on. An error that comes in a reply of
        status 200 counts as what its code says.

        Raises:
            CallFailedError: no completion came back.
            JudgeError: nothing that could ever come back: the key is refused, there is no such model or address.
        """
        body: dict[str, object] = {
            "model": model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "temperature": temperature,
        }
        if seed is not None:
            body["seed"] = seed
        shape, limit = self._shape, self._limit
        while True:
            try:
                completion = await self._post(body | {limit: max_tokens} | _response_format(_SHAPES[shape], schema))
            except CallFailedError as failure:
                if failure.cause != "refused" or failure.forbidden:
                    raise
                if limit == _LIMITS[0] and limit in str(failure):
                    limit = _LIMITS[1]
                elif shape + 1 < len(_SHAPES):
                    shape += 1
                else:
                    raise
                continue
            # Remembered only now: a request that is refused in every form says nothing about forms.
            self._shape, self._limit = max(self._shape, shape), limit
            return completion

    async def _post(self, body: Mapping[str, object]) -> ChatReply:
        from memarena_answering.servers.sessions import post  # noqa: PLC0415

        if self._session is None:
            raise JudgeError("the judge's endpoint is not open")
        try:
            reply = await post(
                self._session, f"{self.url}/chat/completions", self._api_key or "none", body, self._timeout_s
            )
            if reply.status < 300:
                return read_chat(reply.body)
        except UpstreamError as error:
            if error.cause == "timeout":
                raise CallFailedError("timeout", f"no reply within {self._timeout_s:g} s") from error
            if error.cause == "connection":
                raise CallFailedError("connection", f"{self.url}: {_short(str(error))}") from error
            if error.cause == "reported":
                raise self._status(error.code, str(error), {}, in_reply=True) from error
            raise CallFailedError("malformed", _short(str(error))) from error
        raise self._status(reply.status, _short(reply.words()), reply.headers)

    def key_refused(self, said: str) -> JudgeError:
        """What ends a judging whose key the server does not take."""
        return JudgeError(f"--api-key-env: {self.url} refuses the key ({said})")

    def _status(
        self, status: int, message: str, headers: Mapping[str, str], *, in_reply: bool = False
    ) -> CallFailedError | JudgeError:
        said = f"{'error' if in_reply else 'HTTP'} {status}: {message}"
        if status == _KEY:
            return self.key_refused(said)
        if status == _NOT_THERE and not in_reply:
            return JudgeError(f"--endpoint/--model: {self.url} knows no such address or model ({said})")
        if status < _FIRST_ERROR:
            return JudgeError(f"--endpoint: {self.url} redirects elsewhere, which is not followed ({said})")
        if status == _TOO_MANY:
            return CallFailedError("rate_limit", said, retry_after_s(headers), in_reply=in_reply)
        if status in _TRANSIENT or (status >= _SERVER and status not in _BAD_REQUEST):
            return CallFailedError("server_error", said, retry_after_s(headers), in_reply=in_reply)
        return CallFailedError("refused", said, forbidden=status == _FORBIDDEN, in_reply=in_reply)


def _response_format(shape: str, schema: Mapping[str, JsonValue]) -> dict[str, object]:
    if shape == "json_schema":
        return {"response_format": schema_format("verdict", schema)}
    return {"response_format": {"type": "json_object"}} if shape == "json_object" else {}


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
