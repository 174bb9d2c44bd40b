"""Serves a backend whose Search takes a known time: gRPC by hand on ``h2``, with the whole reply prepared in one piece.

It serves grpc.health.v1 and Search (RFC 9113 and gRPC's PROTOCOL-HTTP2); every other method is UNIMPLEMENTED.
``search_time_us`` of the reply is how long it was held back, from the arrival of the request.
"""

from __future__ import annotations

import socket
import socketserver

from _scripted import Arrivals, Listener, hold, serve
from grpc_health.v1 import health_pb2
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from hpack import Encoder, NeverIndexedHeaderTuple
from hyperframe.frame import DataFrame, HeadersFrame
from memarena_proto import memory_backend_pb2 as pb

_HEALTH = b"/grpc.health.v1.Health/Check"
_SEARCH = f"/{pb.DESCRIPTOR.services_by_name['MemoryBackend'].full_name}/Search".encode()
_OK, _UNIMPLEMENTED = b"0", b"12"
_RECEIVED_BYTES = 1 << 16
_FRAME_HEAD_BYTES = 9
_HEAD = [NeverIndexedHeaderTuple(b":status", b"200"), NeverIndexedHeaderTuple(b"content-type", b"application/grpc")]
"""Never indexed: such headers look the same in every reply, whatever was sent before."""


def _end(status: bytes) -> list[NeverIndexedHeaderTuple]:
    return [NeverIndexedHeaderTuple(b"grpc-status", status)]


def _framed(message: bytes) -> bytes:
    """Return a message in the form of a gRPC stream: uncompressed, with its length before it."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def _search_time(microseconds: int) -> bytes:
    """Return the field search_time_us with its number padded to four bytes (up to 268 s), which a varint allows."""
    return _TAG + bytes(
        (
            microseconds & 127 | 128,
            microseconds >> 7 & 127 | 128,
            microseconds >> 14 & 127 | 128,
            microseconds >> 21,
        )
    )


_TAG = pb.SearchResponse(search_time_us=1).SerializeToString()[:-1]
_UNKNOWN = _search_time(0)
_ONE_ITEM = _framed(pb.SearchResponse(items=[pb.MemoryItem(text="nothing", score=1.0)]).SerializeToString() + _UNKNOWN)
_SERVING = _framed(health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING).SerializeToString())


def _ready(body: bytes) -> bytes:
    """Return the frames of a whole reply, for stream 1."""
    encoder = Encoder()
    frames = (
        HeadersFrame(1, encoder.encode(_HEAD), flags=["END_HEADERS"]),
        DataFrame(1, body),
        HeadersFrame(1, encoder.encode(_end(_OK)), flags=["END_HEADERS", "END_STREAM"]),
    )
    return b"".join(frame.serialize() for frame in frames)


_READY = _ready(_ONE_ITEM)
_TIME_AT = slice(_READY.index(_UNKNOWN), _READY.index(_UNKNOWN) + len(_UNKNOWN))


def _addressed(frames: bytes, stream: int) -> bytearray:
    """Return the same frames for another stream."""
    addressed = bytearray(frames)
    offset = 0
    while offset < len(frames):
        addressed[offset + 5 : offset + 9] = stream.to_bytes(4, "big")
        offset += _FRAME_HEAD_BYTES + int.from_bytes(frames[offset : offset + 3], "big")
    return addressed


class _Connection(socketserver.BaseRequestHandler):
    """One client's connection, its requests one after another."""

    request: socket.socket
    server: Listener

    def setup(self) -> None:
        """Begin the HTTP/2 connection."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._arrivals = Arrivals(self.request)
        self._h2 = H2Connection(H2Configuration(client_side=False))
        self._h2.initiate_connection()
        self._paths: dict[int, bytes] = {}
        self._send()

    def handle(self) -> None:
        """Serve until the client goes."""
        buffer = memoryview(bytearray(_RECEIVED_BYTES))
        while size := self._arrivals.readinto(buffer):
            for event in self._h2.receive_data(bytes(buffer[:size])):
                self._take(event)
            self._send()

    def _take(self, event: events.Event) -> None:
        match event:
            case events.RequestReceived():
                self._paths[event.stream_id] = dict(event.headers)[b":path"]
            case events.DataReceived():
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case events.StreamEnded():
                self._answer(event.stream_id, self._paths.pop(event.stream_id))
            case events.StreamReset():
                self._paths.pop(event.stream_id, None)

    def _answer(self, stream: int, path: bytes) -> None:
        if path == _SEARCH:
            self._find(stream)
        elif path == _HEALTH:
            self._reply(stream, _SERVING, _OK)
        else:
            self._reply(stream, b"", _UNIMPLEMENTED)

    def _find(self, stream: int) -> None:
        """Send the prepared frames, then let ``h2`` make the same ones, so that its state fits. RuntimeError if not."""
        ready = _addressed(_READY, stream)
        reply = ready.copy()
        held_ns = hold(self._arrivals.last_ns, self.server.delay_ns)
        reply[_TIME_AT] = _search_time(held_ns // 1000)
        self.request.sendall(reply)
        self._send()
        self._reply(stream, _ONE_ITEM, _OK)
        if (theirs := self._h2.data_to_send()) != ready:
            raise RuntimeError(f"h2 would have sent {theirs!r}, what lay ready was {bytes(ready)!r}")

    def _reply(self, stream: int, body: bytes, status: bytes) -> None:
        self._h2.send_headers(stream, _HEAD)
        self._h2.send_data(stream, body)
        self._h2.send_headers(stream, _end(status), end_stream=True)

    def _send(self) -> None:
        if waiting := self._h2.data_to_send():
            self.request.sendall(waiting)


if __name__ == "__main__":
    serve(_Connection)
