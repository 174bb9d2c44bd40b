"""Reads the operator's settings of memobase from environment variables: the server, and how sessions are sent to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from memarena_backend import ServeError

Flush = Literal["session", "day"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a backend, each named by its variable."""

    url: str
    """MEMOBASE_URL: the server, for example ``http://memobase-server:8000``."""
    token: str = field(repr=False)
    """MEMOBASE_TOKEN: the server's ACCESS_TOKEN, or a project's."""
    flush: Flush = "session"
    """MEMOBASE_FLUSH: whether the server extracts after each session or day. Only ``session`` gives provenance."""
    blob_bytes: int = 12_000
    """MEMOBASE_BLOB_BYTES: a longer session is sent in parts. The server drops blobs above 16,384 tokens."""
    flush_timeout_s: float = 600.0
    """MEMOBASE_FLUSH_TIMEOUT_S: the longest time that a flush can take on the server."""
    start_timeout_s: float = 50.0
    """MEMOBASE_START_TIMEOUT_S: how long to wait for the server before this backend gives up starting."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment. Raises ServeError that names the bad variable."""

    def text(name: str) -> str | None:
        return environment.get(f"MEMOBASE_{name}") or None

    url, token = text("URL"), text("TOKEN")
    if url is None or token is None:
        missing = "MEMOBASE_URL" if url is None else "MEMOBASE_TOKEN"
        raise ServeError(f"{missing}: is not set; this backend needs a Memobase server (backends/memobase/README.md)")
    if not url.startswith(("http://", "https://")):
        raise ServeError(f"MEMOBASE_URL: expected an http(s) URL, got {url!r}")
    flush = text("FLUSH") or "session"
    if flush not in {"session", "day"}:
        raise ServeError(f"MEMOBASE_FLUSH: expected session or day, got {flush!r}")
    return Settings(
        url=url,
        token=token,
        flush=cast(Flush, flush),
        blob_bytes=_whole("BLOB_BYTES", text("BLOB_BYTES") or "12000", 1_000, 14_000),
        flush_timeout_s=float(_whole("FLUSH_TIMEOUT_S", text("FLUSH_TIMEOUT_S") or "600", 1, 86_400)),
        start_timeout_s=float(_whole("START_TIMEOUT_S", text("START_TIMEOUT_S") or "50", 1, 86_400)),
    )


def _whole(name: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise ServeError(f"MEMOBASE_{name}: expected a whole number from {least} to {most}, got {value!r}")
    return int(value)
