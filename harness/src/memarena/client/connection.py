"""Noticing that a connection broke, also between two calls."""

from __future__ import annotations

import grpc


class ConnectionWatch:
    """Counts how often a channel has lost its connection since it was first made.

    A backend that ends and comes back between two calls shows in no call at all: the channel connects again, and the
    next call succeeds, on a memory that may be empty. The connection is what tells.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        self.drops = 0
        self._connected = False
        # gRPC keeps the subscription until the channel is closed, and calls back on one thread at a time.
        channel.subscribe(self._note)

    def _note(self, state: grpc.ChannelConnectivity) -> None:
        if state is grpc.ChannelConnectivity.READY:
            self._connected = True
        elif self._connected:
            self._connected = False
            self.drops += state is not grpc.ChannelConnectivity.SHUTDOWN
