"""Noticing that a connection broke, also between two calls."""

from __future__ import annotations

import time

import grpc

_END_S = 2.0
_PAUSE_S = 0.01


class ConnectionWatch:
    """Counts how often a channel has lost its connection since it was first made.

    A backend that ends and comes back between two calls shows in no call at all: the channel connects again, and the
    next call succeeds, on a memory that may be empty. The connection is what tells.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        self.drops = 0
        self._connected = False
        self._channel = channel
        # gRPC calls back on one thread at a time.
        channel.subscribe(self._note)

    def end(self) -> None:
        """Stop watching, before the channel is closed.

        gRPC watches on its own thread, which asks the channel every 0.2 s and dies with a trace on standard error
        where that is closed under it. Nothing public tells when it has ended.
        """
        self._channel.unsubscribe(self._note)
        state = getattr(self._channel, "_connectivity_state", None)
        deadline = time.monotonic() + _END_S
        while getattr(state, "polling", False) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)

    def wait_past(self, drops: int, wait_s: float) -> bool:
        """Whether there are more than ``drops`` by now or within ``wait_s``; returns as soon as there are."""
        deadline = time.monotonic() + wait_s
        while self.drops <= drops and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return self.drops > drops

    def _note(self, state: grpc.ChannelConnectivity) -> None:
        if state is grpc.ChannelConnectivity.READY:
            self._connected = True
        elif self._connected:
            self._connected = False
            self.drops += state is not grpc.ChannelConnectivity.SHUTDOWN
