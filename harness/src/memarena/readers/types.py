"""Defines a started reader as the rest of the harness sees it: its address, its process, its prefix cache."""

from __future__ import annotations

import time
from dataclasses import dataclass

from memarena_answering.servers.door import ask
from memarena_answering.servers.replies import UpstreamError

from memarena.gateway import Upstream
from memarena.log.records import ReaderRef
from memarena.processes import GuardedProcess
from memarena.readers.errors import ReaderError

__all__ = ["ReaderError", "RunningReader", "flush_cache"]

WAIT_S = 30.0
_RETRY_S = 0.25


@dataclass(frozen=True, slots=True)
class RunningReader:
    """A reader that answers at ``upstream.base_url``. ``process`` is None if the harness did not start it."""

    ref: ReaderRef
    """The reader as the log describes it."""
    upstream: Upstream
    """The reader as a model of the gateway."""
    process: GuardedProcess | None = None

    def alive(self) -> bool:
        """Whether the reader's process runs; True for a reader that the harness did not start."""
        return self.process is None or self.process.poll() is None

    def last_words(self) -> str:
        """Return the end of the output of a reader that the harness started; empty for any other."""
        return "" if self.process is None else self.process.log_tail()

    def begin_cell(self) -> None:
        """Empty the cache of a ``warm_prefix`` reader, so that no cell profits from the cell before it.

        Raises :class:`ReaderError` unless the server confirms it.
        """
        if self.ref.result_class == "warm_prefix":
            flush_cache(self.upstream.server_url, self.upstream.api_key)

    def stop(self) -> None:
        """Stop the reader if the harness started it. May be called twice."""
        if self.process is not None:
            self.process.stop()


def flush_cache(server_url: str, api_key: str | None, wait_s: float = WAIT_S) -> None:
    """Empty the prefix cache of an SGLang server, and retry while it is busy.

    The status decides, not the text: some versions answer "Cache flushed." with status 400 while a request is under
    way. Newer versions wait for ``timeout`` seconds, older ones ignore the parameter.

    Args:
        server_url: without ``/v1``.
        api_key: of the server, if it needs one.
        wait_s: seconds after which a server that is still busy is an error.

    Raises:
        ReaderError: the server does not answer 200.
    """
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
