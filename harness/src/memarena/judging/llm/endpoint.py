"""One chat completion at an OpenAI-compatible server: schema where it takes one, errors by what they mean."""

from __future__ import annotations

import asyncio
import ipaddress
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from memarena_answering.retry_after import retry_after_s
from pydantic import JsonValue

from memarena.judging.errors import JudgeError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

FailureCause = Literal["timeout", "connection", "rate_limit", "server_error", "refused", "malformed"]
_SHAPES = ("json_schema", "json_object", "text")
_LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the limit of a reply: newer servers refuse the first, older ones do not know the second."""
_TOO_MANY, _SERVER, _BAD_REQUEST = 429, 500, (400, 415, 422, 501)
_TRANSIENT = (408, 409, 425)
_KEY, _FORBIDDEN, _NOT_THERE = 401, 403, 404
_FIRST_ERROR, _LAST_ERROR = 400, 599
_THOUGHTS = frozenset({"thinking", "reasoning"})
"""Parts of a message that some models put before what they say."""
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


@dataclass(frozen=True)
class Completion:
    """What a server returned."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None


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
        self.url = _checked(url)
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._client: AsyncOpenAI | None = None
        self._shape = 0
        self._limit = _LIMITS[0]

    async def __aenter__(self) -> Self:
        import openai  # noqa: PLC0415 (half a second that only a judge with a model pays)

        self._client = openai.AsyncOpenAI(
            base_url=self.url,
            api_key=self._api_key or "none",
            max_retries=0,
            timeout=self._timeout_s,
            # A redirect would take the key and the answers elsewhere.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=not _is_local(self.url), follow_redirects=False),
            default_headers={"Accept-Encoding": "identity"},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()

    async def complete(
        self,
        model: str,
        messages: Sequence[Message],
        schema: Mapping[str, JsonValue],
        *,
        max_tokens: int,
        temperature: float,
        seed: int | None,
    ) -> Completion:
        """Ask once. Where the server refuses a schema, ask for a JSON object, then for text, and remember that.

        Where it refuses the name of the limit, the other name is used from then on. An error that comes in a reply of
        status 200 counts as what its code says.

        Raises:
            CallFailedError: no completion came back.
            JudgeError: nothing that could ever come back: the key is refused, there is no such model or address.
        """
        body: dict[str, JsonValue] = {
            "model": model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "temperature": temperature,
        }
        if seed is not None:
            body["seed"] = seed
        shape, limit = self._shape, self._limit
        while True:
            try:
                reply = await self._post(body | {limit: max_tokens} | _response_format(_SHAPES[shape], schema))
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
            return _completion(reply)

    async def _post(self, body: Mapping[str, JsonValue]) -> object:
        import openai  # noqa: PLC0415

        if self._client is None:
            raise JudgeError("the judge's endpoint is not open")
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._client.post("/chat/completions", cast_to=object, body=dict(body))
        except (TimeoutError, openai.APITimeoutError) as error:
            raise CallFailedError("timeout", f"no reply within {self._timeout_s:g} s") from error
        except openai.APIStatusError as error:
            raise self._status(error.status_code, _short(error.message), error.response.headers) from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise CallFailedError("connection", f"{self.url} cannot be reached: {_short(str(cause))}") from error
        except (openai.OpenAIError, ValueError) as error:
            raise CallFailedError("malformed", f"the server's reply cannot be read: {_short(str(error))}") from error
        told = _error_in(reply)
        if told is not None:
            raise self._status(*told, {}, in_reply=True)
        return reply

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


def _response_format(shape: str, schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    if shape == "json_schema":
        named: dict[str, JsonValue] = {"name": "verdict", "strict": True, "schema": dict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    return {"response_format": {"type": "json_object"}} if shape == "json_object" else {}


def _error_in(reply: object) -> tuple[int, str] | None:
    """Code and message of an error that a server sent as a reply of status 200; None where the reply is none.

    Gateways do so when the model's own host fails after they have begun to answer: beside the choices or within one
    (https://openrouter.ai/docs/api/reference/errors-and-debugging). Without a code it is an error of the server.
    """
    if not isinstance(reply, dict):
        return None
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    error = reply.get("error") or (choice.get("error") if isinstance(choice, dict) else None)
    if not error:
        return None
    code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
    try:
        status = int(code) if isinstance(code, int | str) else _SERVER
    except ValueError:
        status = _SERVER
    return status if _FIRST_ERROR <= status <= _LAST_ERROR else _SERVER, _short(str(message or error))


def _completion(reply: object) -> Completion:
    """Raises CallFailedError if the body is no chat completion."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(reply, dict) or not isinstance(choice, dict) or not isinstance(message, dict):
        raise CallFailedError("malformed", f"the server's reply is no chat completion: {_short(str(reply))}")
    usage = reply.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(
        text=_text(message.get("content")),
        finish_reason=str(choice.get("finish_reason") or ""),
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )


def _text(content: object) -> str:
    """What a message says: a text, or the texts of its parts; thoughts are none of it. Raises CallFailedError."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise CallFailedError("malformed", f"the reply's message is no text: {_short(str(content))}")
    texts = []
    for part in content:
        kind, text = (part.get("type"), part.get("text")) if isinstance(part, dict) else (None, None)
        if kind == "text" and isinstance(text, str):
            texts.append(text)
        elif kind not in _THOUGHTS:
            raise CallFailedError("malformed", f"part of the reply's message is no text: {_short(str(part))}")
    return "".join(texts)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _short(text: str) -> str:
    return " ".join(text.split())[:200]


def _checked(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise JudgeError(f"--endpoint {url}: expected a URL such as https://openrouter.ai/api/v1")
    path = parts.path.rstrip("/") or "/v1"
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _is_local(url: str) -> bool:
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
