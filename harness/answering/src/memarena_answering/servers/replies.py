"""Defines replies of a model's server and limits of their size, and extracts the message of an error reply."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

MAX_ERROR_BYTES = 64 << 10
MAX_REPLY_BYTES = 16 << 20
"""Limit of a reply of a chat server, streamed or whole, and of any other reply but vectors."""
MAX_VECTORS_BYTES = 256 << 20
"""Limit of a reply of an embedder or a reranker: vectors are long."""
MAX_EVENT_BYTES = 1 << 20
"""Limit of an event of a stream; servers send a few tokens in each."""
CONNECT_TIMEOUT_S = 5.0
KEEPALIVE_S = 2.0
"""Seconds that an idle connection is kept: less than the 5 s after which llama.cpp and uvicorn close theirs."""

_MAX_ERROR_CHARS = 500


class UpstreamError(Exception):
    """The model's server failed: no connection, an error in its reply, a broken stream. Never the backend's fault.

    Args:
        message: one line.
        status: HTTP status that a gateway returns; 504 if the server was too slow.
        cause: what went wrong.
        code: HTTP status of an error that is ``reported`` in a reply of status 200; else 0.
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
    """A reply of a server."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case, or in a mapping that ignores case."""
    body: bytes

    def parsed(self) -> Any:
        """Return the body as JSON, or None if it is not JSON."""
        return parse_json(self.body)

    def error_line(self) -> str:
        """Return the message of an error reply in one line; for a redirect, its target."""
        if 300 <= self.status < 400:
            return f"a redirect to {one_line(self.headers.get('location', 'nowhere'), 200)}, which is not followed"
        body = self.parsed()
        return error_message(self.body[:_MAX_ERROR_CHARS].decode("utf-8", "replace") if body is None else body)


def parse_json(raw: bytes) -> Any:
    """Parse bytes as JSON; return None if they are not JSON."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def api_url(address: str) -> str | None:
    """Return the base URL of an API, with ``/v1`` if it has no path; None if it is not a base URL of http or https."""
    parts = urllib.parse.urlsplit(address)
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        return None
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") or "/v1", "", ""))


def authorization(api_key: str | None) -> dict[str, str]:
    """Return the header that carries a key; empty without a key."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def check_coding(headers: Mapping[str, str]) -> None:
    """Raise :class:`UpstreamError` for a compressed body, which was not requested and can expand without limit."""
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"", "identity"}:
        raise UpstreamError(f"the server sent a body in {coding[:40]}, which was not asked for")


def limit_size(parts: Iterable[bytes], most_bytes: int) -> Iterable[bytes]:
    """Yield the parts of a body as they come. Raises :class:`UpstreamError` if they exceed ``most_bytes`` together."""
    size = 0
    for part in parts:
        size += len(part)
        if size > most_bytes:
            raise too_long(most_bytes)
        yield part


def too_long(most_bytes: int) -> UpstreamError:
    """Return the error of a reply that exceeds its limit."""
    return UpstreamError(f"the server's reply is longer than {most_bytes:,} bytes")


def too_slow() -> UpstreamError:
    """Return the error of a timeout."""
    return UpstreamError("the server did not answer in time", status=504, cause="timeout")


def unreachable(error: BaseException) -> UpstreamError:
    """Return the error of a server that cannot be reached."""
    words = one_line(str(getattr(error, "strerror", None) or error)) or type(error).__name__
    return UpstreamError(f"the server cannot be reached: {words}", cause="connection")


def broken(error: BaseException) -> UpstreamError:
    """Return the error of a reply that breaks off or is not HTTP."""
    return UpstreamError(f"the server failed: {one_line(str(error)) or type(error).__name__}", cause="connection")


def error_message(body: object) -> str:
    """Return the message of an error reply in any of the usual forms, in one line."""
    inner = body
    for _ in range(4):  # some servers nest one error in another
        if isinstance(inner, list) and inner:
            inner = inner[0]
        elif isinstance(inner, dict) and (key := next((k for k in ("error", "message", "detail") if inner.get(k)), "")):
            inner = inner[key]
    return one_line(inner if isinstance(inner, str) else json.dumps(inner))


def one_line(text: str, most: int = _MAX_ERROR_CHARS) -> str:
    """Return a server's text as one line without control characters, cut to ``most`` characters."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())[:most]
