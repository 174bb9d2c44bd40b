"""What a started reader is to the rest of the harness, and the error of those that cannot be started."""

from __future__ import annotations

from dataclasses import dataclass

from memarena.gateway import Upstream
from memarena.log.records import ReaderRef
from memarena.processes import GuardedProcess
from memarena.readers.errors import ReaderError
from memarena.readers.flushing import flush_cache

__all__ = ["ReaderError", "RunningReader"]


@dataclass(frozen=True, slots=True)
class RunningReader:
    """A reader that answers at ``upstream.base_url``. ``process`` is None where it was running before us."""

    ref: ReaderRef
    upstream: Upstream
    process: GuardedProcess | None = None

    def alive(self) -> bool:
        """False once a reader that we started has ended. One that we only connect to counts as alive."""
        return self.process is None or self.process.poll() is None

    def last_words(self) -> str:
        """The end of what a reader that we started has printed; empty for one that we only connect to."""
        return "" if self.process is None else self.process.log_tail()

    def begin_cell(self) -> None:
        """Empty the cache of a ``warm_prefix`` reader. Raises :class:`ReaderError` unless the server says it did."""
        if self.ref.result_class == "warm_prefix":
            flush_cache(self.upstream.server_url, self.upstream.api_key)

    def stop(self) -> None:
        """End the reader if we started it. Calling it twice is fine."""
        if self.process is not None:
            self.process.stop()
