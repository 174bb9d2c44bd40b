"""Detects that a gRPC connection broke, also between two calls."""

from __future__ import annotations

import time

import grpc

_END_S = 2.0  # wait at most this long for gRPC's polling thread to end
_PAUSE_S = 0.01


class ConnectionWatch:
    """Counts how often a channel has lost its connection since it was first made.

    If a backend restarts between two calls, no call fails: the channel reconnects and the next call succeeds, on a
    memory that may be empty. Only the state of the connection shows it.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        self.drops = 0
        self._connected = False
        self._channel = channel
        # gRPC calls back on one thread at a time.
        channel.subscribe(self._note)

    def end(self) -> None:
        """Stop watching, before the channel is closed.

        gRPC polls the channel every 0.2 s on its own thread, which prints a traceback if the channel is closed
        meanwhile. No public API tells when that thread has ended, so a private attribute is polled.
        """
        self._channel.unsubscribe(self._note)
        state = getattr(self._channel, "_connectivity_state", None)
        deadline = time.monotonic() + _END_S
        while getattr(state, "polling", False) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)

    def wait_past(self, drops: int, wait_s: float) -> bool:
        """Whether the count exceeds ``drops`` now or within ``wait_s`` seconds; returns as soon as it does."""
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
