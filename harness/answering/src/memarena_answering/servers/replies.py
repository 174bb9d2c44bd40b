"""Whole replies of a model's server, whatever asked for them: how long they may be, and what an error in them says."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

MAX_ERROR_BYTES = 64 << 10
MAX_REPLY_BYTES = 16 << 20
"""Largest reply of a chat server, streamed or whole, and of what else is asked of a server."""
MAX_VECTORS_BYTES = 256 << 20
"""Largest reply of an embedder or a reranker: vectors are long."""
MAX_EVENT_BYTES = 1 << 20
"""Longest event of a stream; servers send a token or a few in each."""
CONNECT_TIMEOUT_S = 5.0
KEEPALIVE_S = 2.0
"""How long an idle connection to a server is kept: less than the 5 s after which llama.cpp and uvicorn close theirs."""

_ERROR_WORDS = 500


class UpstreamError(Exception):
    """The model's server failed: no connection, an error in its reply, a broken stream. Ours, never the backend's.

    Args:
        message: one line.
        status: what a gateway passes on; 504 where the server was too slow.
        cause: what went wrong.
        code: of an error that is ``reported`` in a reply of status 200, as an HTTP status.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 502,
        cause: Literal["timeout", "connection", "malformed", "reported"] = "malformed",
        code: int = 0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.cause = cause
        self.code = code


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply of a server."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case, or without regard to it."""
    body: bytes

    def parsed(self) -> Any:
        """The body as JSON, None where it is none."""
        return parsed(self.body)

    def words(self) -> str:
        """What an error reply says, on one line; where it leads to, for a redirect."""
        if 300 <= self.status < 400:
            return f"a redirect to {one_line(self.headers.get('location', 'nowhere'), 200)}, which is not followed"
        body = self.parsed()
        return error_message(self.body[:_ERROR_WORDS].decode("utf-8", "replace") if body is None else body)


def parsed(raw: bytes) -> Any:
    """Bytes as JSON, None where they are none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def api_url(address: str) -> str | None:
    """The base URL of an API, ``/v1`` where it has no path; None for what is no such URL."""
    parts = urllib.parse.urlsplit(address)
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        return None
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") or "/v1", "", ""))


def authorization(api_key: str | None) -> dict[str, str]:
    """The header that carries a key."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def check_coding(headers: Mapping[str, str]) -> None:
    """Raise :class:`UpstreamError` for a compressed body, which was not asked for: it can unfold without end."""
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"", "identity"}:
        raise UpstreamError(f"the server sent a body in {coding[:40]}, which was not asked for")


def counted(parts: Iterable[bytes], most_bytes: int) -> Iterable[bytes]:
    """Parts of a body as they come. Raises :class:`UpstreamError` as soon as they are too long together."""
    size = 0
    for part in parts:
        size += len(part)
        if size > most_bytes:
            raise too_long(most_bytes)
        yield part


def too_long(most_bytes: int) -> UpstreamError:
    """The error of a reply without end."""
    return UpstreamError(f"the server's reply is longer than {most_bytes:,} bytes")


def too_slow() -> UpstreamError:
    """The error of a reply that does not come."""
    return UpstreamError("the server did not answer in time", status=504, cause="timeout")


def unreachable(error: BaseException) -> UpstreamError:
    """The error of a server to which no connection can be had."""
    words = one_line(str(getattr(error, "strerror", None) or error)) or type(error).__name__
    return UpstreamError(f"the server cannot be reached: {words}", cause="connection")


def broken(error: BaseException) -> UpstreamError:
    """The error of a reply that breaks off or is no HTTP."""
    return UpstreamError(f"the server failed: {one_line(str(error)) or type(error).__name__}", cause="connection")


def error_message(body: object) -> str:
    """The words of an error reply in any of the usual forms, on one line."""
    inner = body
    for _ in range(4):  # some servers put one into the other
        if isinstance(inner, list) and inner:
            inner = inner[0]
        elif isinstance(inner, dict) and (key := next((k for k in ("error", "message", "detail") if inner.get(k)), "")):
            inner = inner[key]
    return one_line(inner if isinstance(inner, str) else json.dumps(inner))


def one_line(text: str, most: int = _ERROR_WORDS) -> str:
    """A server's words as one line that a terminal may show: without control characters."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:most]
