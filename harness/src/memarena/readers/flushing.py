"""Emptying the prefix cache of an SGLang server, and believing its status, not its words.

Some versions answer "Cache flushed." with status 400 while a request is under way; newer ones wait for ``timeout``
seconds, older ones do not know the parameter.
"""

from __future__ import annotations

import time

from memarena_answering.servers.door import ask
from memarena_answering.servers.replies import UpstreamError

from memarena.readers.errors import ReaderError

WAIT_S = 30.0
_RETRY_S = 0.25


def flush_cache(server_url: str, api_key: str | None, wait_s: float = WAIT_S) -> None:
    """Have the cache emptied, again while the server is busy. Raises :class:`ReaderError` unless it answers 200."""
    url = f"{server_url}/flush_cache?timeout={wait_s:g}"
    deadline = time.monotonic() + wait_s
    while True:
        try:
            reply = ask(url, api_key, timeout_s=wait_s + 5, post=True)
        except UpstreamError as error:
            raise ReaderError(f"reader {server_url}: POST /flush_cache: {error}") from error
        if reply.status == 200:
            return
        if reply.status != 400 or time.monotonic() > deadline:
            words = " ".join(reply.body[:200].decode("utf-8", "replace").split())
            raise ReaderError(f"reader {server_url}: POST /flush_cache answered {reply.status} {words!r}")
        time.sleep(_RETRY_S)
