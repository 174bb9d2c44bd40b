"""Paces requests to a model's server: keeps to its limits, and retries a busy server when it says.

Waiting is before a request goes upstream and not part of any time: the call's clock starts with the request that
was answered, and ``waited_ns`` of its record has the time of waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from memarena_answering.servers.retry_after import retry_after_s

from memarena.gateway.calls import OpenCall
from memarena.gateway.types import Upstream

BUSY = frozenset({429, 503, 529})
"""HTTP statuses of a busy server; 529 is Anthropic's and Cloudflare's "overloaded"."""
LONGEST_WAIT_S = 120.0
"""Longest single wait that a server may ask for; if it asks for more, its reply is passed on."""
FIRST_WAIT_S = 1.0
"""First wait for a server that states none; each next one is twice as long."""
SHORTEST_WAIT_S = 0.05
UNSTATED_S = 30.0
"""Longest total wait for a server that does not state when to retry."""


class Pace:
    """Limits the requests to one server: how many at once, how many per minute."""

    def __init__(self, upstream: Upstream) -> None:
        self._slots = asyncio.Semaphore(upstream.concurrency) if upstream.concurrency else None
        self._gap_s = 60.0 / upstream.requests_per_minute if upstream.requests_per_minute else 0.0
        self._next_s = 0.0

    @asynccontextmanager
    async def turn(self, call: OpenCall) -> AsyncIterator[None]:
        """Wait for a free slot among the concurrent requests, and hold it."""
        if self._slots is None:
            yield
            return
        call.has_waited |= self._slots.locked()
        async with self._slots:
            yield

    async def minute(self, call: OpenCall) -> None:
        """Wait until the limit per minute allows the next request."""
        if self._gap_s:
            now = time.monotonic()
            begins = max(now, self._next_s)
            self._next_s = begins + self._gap_s
            await pause(call, begins - now)


async def pause(call: OpenCall, seconds: float) -> None:
    """Wait, and add the time to the call's waiting time."""
    if seconds > 0:
        call.has_waited = True
        await asyncio.sleep(seconds)


def wait_s(headers: Mapping[str, str], tries: int, waited_s: float, patience_s: float) -> float | None:
    """Return the seconds until the next retry of a busy server; None if it would exceed ``patience_s``.

    ``tries``: requests so far that the server refused as busy, from 1. ``waited_s``: their total waiting time.
    """
    stated = retry_after_s(headers)
    if stated is None:
        wait = FIRST_WAIT_S * 2 ** (tries - 1)
        return wait if waited_s + wait <= min(patience_s, UNSTATED_S) else None
    wait = max(SHORTEST_WAIT_S, stated)
    return wait if wait <= LONGEST_WAIT_S and waited_s + wait <= patience_s else None
