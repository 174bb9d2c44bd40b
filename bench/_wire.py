"""Measures round trips independently: when the kernel saw request and reply pass on the loopback (packet(7)).

``python bench/_wire.py PORT ASKED ANSWERED FILE`` notes packets to and from a port until SIGTERM: of requests those
that hold ``ASKED``, of replies those that hold ``ANSWERED``. It needs CAP_NET_RAW. It is a separate process, since a
thread would compete with what is timed for the interpreter.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_SO_TIMESTAMPNS = 35
_ALL_PROTOCOLS = 3
_OUTGOING = 4
"""Packet type of an outgoing copy; on the loopback, every packet is captured a second time, as an incoming one."""
_ETHERNET, _TCP = 14, 6
_READY = "ready\n"


class Witness:
    """Packets captured on one port. ``spans_ns`` may be read after the ``with`` block of :func:`witness` has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.spans_ns: list[int] = []
        """From a request to its reply, in nanoseconds, in order."""

    def _take(self) -> None:
        request_ns: int | None = None
        for line in self._path.read_text().splitlines()[1:]:
            event, at_ns = line.split()
            if event == "asked":
                request_ns = int(at_ns)
            elif request_ns is not None:
                self.spans_ns.append(int(at_ns) - request_ns)
                request_ns = None


def allowed() -> bool:
    """Whether this process may look at packets."""
    try:
        with _socket():
            return True
    except OSError:
        return False


@contextlib.contextmanager
def witness(address: str, request: str, reply: str) -> Iterator[Witness]:
    """Capture the packets of ``address`` (HOST:PORT) inside the block."""
    port = address.rpartition(":")[2]
    with tempfile.TemporaryDirectory() as folder:
        result = Witness(Path(folder) / "seen")
        process = subprocess.Popen([sys.executable, __file__, port, request, reply, str(result._path)])
        try:
            while not result._path.exists() and process.poll() is None:
                time.sleep(0.01)
            yield result
            time.sleep(0.05)
        finally:
            process.terminate()
            process.wait()
        result._take()


def _socket() -> socket.socket:
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    tap.bind(("lo", 0))
    tap.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return tap


def _watch(port: int, request: bytes, reply: bytes, path: Path) -> None:
    """Write the time of each request and reply on ``port`` to ``path``, until this process is ended."""
    with _socket() as tap:
        path.with_suffix(".new").write_text(_READY)
        path.with_suffix(".new").rename(path)
        with path.open("a") as out:
            while True:
                packet, extra, _, source = tap.recvmsg(1 << 16, 128)
                if source[2] == _OUTGOING or packet[12:14] != b"\x08\x00" or packet[23] != _TCP:
                    continue
                tcp = _ETHERNET + (packet[14] & 15) * 4
                sender, receiver = struct.unpack_from("!HH", packet, tcp)
                event = "asked" if receiver == port and request in packet else ""
                event = "answered" if sender == port and reply in packet else event
                if event:
                    seconds, nanoseconds = struct.unpack("qq", extra[0][2][:16])
                    out.write(f"{event} {seconds * 10**9 + nanoseconds}\n")
                    out.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    _watch(int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3].encode(), Path(sys.argv[4]))
