"""Calls a chat server from an event loop: negotiates the request's form, classifies failures, and retries.

For judges and the simulator, whose calls are not timed. Calls of readers are measured, and so never retried
(``memarena_answering.client``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, Self

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from memarena_answering.servers.chat import ChatReply, read_chat, schema_format
from memarena_answering.servers.replies import UpstreamError, api_url, one_line
from memarena_answering.servers.retry_after import retry_after_s

if TYPE_CHECKING:
    from aiohttp import ClientSession

FailureCause = Literal["timeout", "connection", "rate_limit", "server_error", "refused", "malformed"]
_SHAPES = ("json_schema", "json_object", "text")
"""Forms of a reply that are requested, the strictest first."""
_LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the limit of a reply's tokens: newer servers refuse the first, older servers do not know the second."""
_KEY, _FORBIDDEN, _NOT_THERE, _TOO_MANY = 401, 403, 404, 429
_TRANSIENT = frozenset({408, 409, 425})
_FIRST_ERROR, _SERVER, _NOT_IMPLEMENTED = 400, 500, 501
_COUNTED_AS = {"timeout": "timeouts", "connection": "connection_errors", "malformed": "malformed_replies"}


class CallFailedError(Exception):
    """A call returned no completion.

    Args:
        cause: what went wrong.
        message: the same in a line for people.
        wait_s: seconds that the server wants the client to wait, None if it states none.
        forbidden: refused with HTTP 403, which may be about the key or about the content of this request.
        in_reply: reported in the body of a reply with status 200: nothing was delivered that could be billed.
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
        """Whether a retry can help."""
        return self.cause != "refused"


def asking_again(
    tries: int,
    longest_wait_s: float,
    first_wait_s: float = 1.0,
    worth: Callable[[CallFailedError], bool] = lambda failure: failure.may_pass,
) -> AsyncRetrying:
    """Return the retry policy for calls that raise :class:`CallFailedError`; the last error is raised if all fail.

    The wait is the one that the server states, but at most ``longest_wait_s``; none after a malformed reply; else a
    random wait that grows from ``first_wait_s``.
    """
    backoff = wait_random_exponential(multiplier=first_wait_s, max=longest_wait_s)

    def wait(state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        if isinstance(failure, CallFailedError):
            if failure.cause == "malformed":
                return 0.0
            if failure.wait_s is not None:
                return min(failure.wait_s, longest_wait_s)
        return backoff(state)

    return AsyncRetrying(
        stop=stop_after_attempt(tries),
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, CallFailedError) and worth(error)),
        reraise=True,
    )


class ChatServer:
    """A server. An asynchronous context manager; safe for many calls at once in its event loop.

    Args:
        url: base URL.
        api_key: None if the server needs none.
        timeout_s: limit of a request.
        hopeless: type of the error if no call can ever succeed (no such URL, address or model, a key that is refused,
            a redirect). Its argument is a line that names the flag.
        note: called with the name of each event that is counted: ``requests``, ``status_503``, ``timeouts``,
            ``schema_refused``.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None,
        timeout_s: float,
        hopeless: type[Exception],
        note: Callable[[str], None] = lambda what: None,
    ) -> None:
        checked = api_url(url)
        if checked is None:
            raise hopeless(f"--endpoint {url}: expected a URL such as https://openrouter.ai/api/v1")
        self.url = checked
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._hopeless = hopeless
        self._note = note
        self._session: ClientSession | None = None
        self._shape = 0
        self._limit = _LIMITS[0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def complete(
        self, body: Mapping[str, object], max_tokens: int, name: str, schema: Mapping[str, object]
    ) -> ChatReply:
        """Return a completion. If the server refuses a schema, ask for a JSON object, then for text, and remember that.

        If it refuses the name of the limit, the other name is used from then on. An error in a reply of status 200 is
        handled by its code as if it were the HTTP status.

        Raises CallFailedError if there is no completion, ``hopeless`` if no call can ever succeed.
        """
        shape, limit = self._shape, self._limit
        while True:
            try:
                reply = await self._post({**body, limit: max_tokens, **_response_format(_SHAPES[shape], name, schema)})
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
            # Remembered only after success: a request that is refused in every form is refused for another reason.
            if shape > self._shape:
                self._note("schema_refused")
            self._shape, self._limit = max(self._shape, shape), limit
            return reply

    async def _post(self, body: Mapping[str, object]) -> ChatReply:
        """Send a request once and return its completion. Raises as :meth:`complete`."""
        from memarena_answering.servers.sessions import new_session, post, proxy_for  # noqa: PLC0415 (aiohttp is slow)

        if self._session is None:
            self._session = new_session(proxy=proxy_for(self.url))
        self._note("requests")
        try:
            reply = await post(
                self._session, f"{self.url}/chat/completions", self._api_key or "none", body, self._timeout_s
            )
            if reply.status < 300:
                return read_chat(reply.body)
        except UpstreamError as error:
            if error.cause == "reported":
                raise self._status(error.code, str(error), {}, in_reply=True) from error
            self._note(_COUNTED_AS[error.cause])
            line = f"{self.url}: {error}" if error.cause == "connection" else str(error)
            late = f"no reply within {self._timeout_s:g} s"
            raise CallFailedError(error.cause, late if error.cause == "timeout" else one_line(line, 200)) from error
        raise self._status(reply.status, one_line(reply.error_line(), 200), reply.headers)

    def key_refused(self, reported: str) -> Exception:
        """Return the error of a server that refuses the key."""
        return self._hopeless(f"--api-key-env: {self.url} refuses the key ({reported})")

    def _status(self, status: int, message: str, headers: Mapping[str, str], *, in_reply: bool = False) -> Exception:
        """Count an error status and return its error: CallFailedError, or ``hopeless`` if no call can succeed."""
        self._note(f"status_{status}")
        reported = f"{'error' if in_reply else 'HTTP'} {status}: {message}"
        if status == _KEY:
            return self.key_refused(reported)
        if status == _NOT_THERE and not in_reply:
            return self._hopeless(f"--endpoint/--model: {self.url} knows no such address or model ({reported})")
        if status < _FIRST_ERROR:
            return self._hopeless(f"--endpoint {self.url}: {message}")
        if status == _TOO_MANY:
            return CallFailedError("rate_limit", reported, retry_after_s(headers), in_reply=in_reply)
        if status in _TRANSIENT or (status >= _SERVER and status != _NOT_IMPLEMENTED):
            return CallFailedError("server_error", reported, retry_after_s(headers), in_reply=in_reply)
        return CallFailedError("refused", reported, forbidden=status == _FORBIDDEN, in_reply=in_reply)


def _response_format(shape: str, name: str, schema: Mapping[str, object]) -> dict[str, object]:
    if shape == "json_schema":
        return {"response_format": schema_format(name, schema)}
    return {"response_format": {"type": "json_object"}} if shape == "json_object" else {}
