"""Delays replies of the scripted servers by a time that is exact to about a tenth of a millisecond on the wire.

The delay counts from the moment at which the kernel took the request's last packet in, not from when Python learned of
it; the last of it is spent awake, since who sleeps wakes late; and the reply is made beforehand, so that nothing but
sending comes after it. Each server is a separate process with one thread per connection.
"""

from __future__ import annotations

import argparse
import gc
import io
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

_SO_TIMESTAMPNS = 35
"""socket(7): each packet's time of arrival comes with it, seconds and nanoseconds of the wall clock."""
_STAMP = struct.Struct("qq")
_AWAKE_NS = 2_000_000


class Arrivals(io.RawIOBase):
    """The receiving side of a connection. ``last_ns``: when the kernel received the last bytes, monotonic clock."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._connection = connection
        self.last_ns = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Wait for something and read it; 0 once the other side has closed."""
        size, extra, _flags, _source = self._connection.recvmsg_into([buffer], socket.CMSG_SPACE(_STAMP.size))
        now_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        if extra:
            seconds, nanoseconds = _STAMP.unpack(extra[0][2])
            now_ns -= max(wall_ns - seconds * 10**9 - nanoseconds, 0)
        self.last_ns = now_ns
        return size


def hold(arrived_ns: int, delay_ns: int) -> int:
    """Return once ``delay_ns`` have passed since ``arrived_ns`` (monotonic clock): how many really have."""
    due_ns = arrived_ns + delay_ns
    time.sleep(max(due_ns - time.monotonic_ns() - _AWAKE_NS, 0) / 1e9)
    while (now_ns := time.monotonic_ns()) < due_ns:
        pass
    return now_ns - arrived_ns


class Listener(socketserver.ThreadingTCPServer):
    """Takes connections on a free port of the loopback. ``delay_ns`` is for the handlers."""

    daemon_threads = True

    def __init__(self, handler: Callable[..., socketserver.BaseRequestHandler], delay_ns: int) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.delay_ns = delay_ns


def serve(handler: Callable[..., socketserver.BaseRequestHandler]) -> None:
    """Run ``python SERVER --delay-ms N``: print the port on standard output, then serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay-ms", type=float, default=0.0)
    delay_ms = parser.parse_args().delay_ms
    gc.freeze()
    with Listener(handler, round(delay_ms * 1e6)) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        sys.stdout.write(f"{listener.server_address[1]}\n")
        sys.stdout.flush()
        sys.stdin.read()
        listener.shutdown()


@contextmanager
def serving(server: str, delay_ms: float) -> Iterator[str]:
    """Run a server of this folder within the block and yield its HOST:PORT. It also ends with this process."""
    command = [sys.executable, str(Path(__file__).with_name(f"{server}.py")), "--delay-ms", str(delay_ms)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise RuntimeError(f"{server}: it ended while starting; why stands above")
        yield f"127.0.0.1:{port}"  # leaving the block closes its standard input
