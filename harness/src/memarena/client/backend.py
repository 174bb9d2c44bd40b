"""Calls one backend over one gRPC connection: a deadline on every call, no hidden retries.

All calls use the synchronous stub on one dedicated thread, so that a timed call shares its thread with no other work
and the caller's thread stays interruptible. Times are ``time.monotonic_ns``.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto import memory_backend_pb2_grpc as pb_grpc

from memarena.client.connection import ConnectionWatch
from memarena.client.enums import enum_name
from memarena.client.errors import BackendCallError, BackendContractError, from_rpc_error

T = TypeVar("T")

_CHANNEL_OPTIONS = (
    # A retry inside gRPC would hide a failure in the measured latency.
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", 4 << 20),
    # Each channel gets its own connection, so that no subchannel in back-off is inherited from an earlier backend.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
    # An idle connection is kept, so that a broken one is due to the backend or the network.
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
)


MAX_ANSWER_DELTAS = 1 << 16
"""TextDeltas of one Answer at most: SPEC.md LIM-1."""
MAX_ITEMS = 1 << 16
"""Items of one response at most: SPEC.md LIM-1. 4 MiB could hold ten times as many short items, 1 GB when decoded."""
MAX_ANSWER_BYTES = 1 << 18
"""UTF-8 bytes of the text of one Answer at most: SPEC.md LIM-1."""
_MOST_NAME_CHARACTERS = 256


@dataclass(frozen=True)
class Deadlines:
    """Timeout of each kind of call, in seconds."""

    describe_s: float = 10.0
    ingest_s: float = 600.0
    search_s: float = 30.0
    answer_s: float = 600.0
    reset_s: float = 60.0
    health_s: float = 60.0


@dataclass(frozen=True)
class Security:
    """TLS roots (PEM file) and bearer token for a backend; both optional."""

    tls_ca: Path | None = None
    bearer_token: str | None = None


@dataclass(frozen=True)
class TimedSearch:
    """A Search with its duration: request sent to response received."""

    response: pb.SearchResponse
    duration_ns: int


@dataclass
class AnswerTrace:
    """The events of an Answer as they arrived.

    ``*_ns`` are nanoseconds since the request was sent; None if the event did not arrive.
    """

    started_mono_ns: int = 0
    """Monotonic time in nanoseconds at which the request was sent; origin of all offsets."""
    retrieved: pb.Retrieved | None = None
    retrieved_ns: int | None = None
    first_delta_ns: int | None = None
    completed: pb.Completed | None = None
    completed_ns: int | None = None
    deltas: list[str] = field(default_factory=list)
    text_bytes: int = 0
    """UTF-8 bytes of the deltas so far."""


class BackendClient:
    """A connection to one backend. Close it, or use it as a context manager.

    ``watched``: count how often the connection breaks (``drops``), which takes one more thread.
    """

    def __init__(
        self, address: str, deadlines: Deadlines, security: Security | None = None, *, watched: bool = False
    ) -> None:
        security = security or Security()
        self.address = address
        self.deadlines = deadlines
        self._metadata = (
            (("authorization", f"Bearer {security.bearer_token}"),) if security.bearer_token is not None else ()
        )
        if security.tls_ca is not None:
            credentials = grpc.ssl_channel_credentials(security.tls_ca.read_bytes())
            self._channel = grpc.secure_channel(address, credentials, options=_CHANNEL_OPTIONS)
        else:
            self._channel = grpc.insecure_channel(address, options=_CHANNEL_OPTIONS)
        self._stub = pb_grpc.MemoryBackendStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)
        self._connection = ConnectionWatch(self._channel) if watched else None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="backend-call")
        self._closed = threading.Event()

    def wait_until_serving(self, alive: Callable[[], bool] = lambda: True) -> None:
        """Wait until grpc.health.v1 reports SERVING.

        Raises :class:`BackendCallError`: UNAVAILABLE when the health deadline passes or ``alive`` returns False,
        UNIMPLEMENTED immediately if the backend has no health service.
        """
        deadline = time.monotonic() + self.deadlines.health_s
        last_status = "not reachable"
        while time.monotonic() < deadline and alive():
            try:
                response = self._run("Health", self._check_health)
            except BackendCallError as error:
                if error.code == "UNIMPLEMENTED":
                    raise
                last_status = f"{error.code} {error.message}"
            else:
                if response.status == health_pb2.HealthCheckResponse.SERVING:
                    return
                last_status = enum_name(health_pb2.HealthCheckResponse.ServingStatus.DESCRIPTOR, response.status)
            time.sleep(0.05)
        raise BackendCallError("Health", "UNAVAILABLE", f"{self.address} is not serving: {last_status}")

    @property
    def drops(self) -> int:
        """How often the connection has broken since it was first established; 0 if it is not watched."""
        return self._connection.drops if self._connection is not None else 0

    def broke_since(self, drops: int, wait_s: float) -> bool:
        """Whether the connection has broken more than ``drops`` times, waiting up to ``wait_s`` seconds for it."""
        return self._connection is not None and self._connection.wait_past(drops, wait_s)

    def serving(self) -> bool:
        """Whether grpc.health.v1 reports SERVING now; False if there is no reply within two seconds."""
        try:
            response = self._run("Health", self._check_health)
        except BackendCallError:
            return False
        return bool(response.status == health_pb2.HealthCheckResponse.SERVING)

    def _check_health(self) -> health_pb2.HealthCheckResponse:
        return self._health.Check(health_pb2.HealthCheckRequest(), timeout=2.0, metadata=self._metadata)

    def describe(self) -> pb.DescribeResponse:
        """Call Describe. Raises :class:`BackendContractError` if required fields are missing or too long."""
        response = self._run(
            "Describe",
            lambda: self._stub.Describe(
                pb.DescribeRequest(caller_minor_version=2), timeout=self.deadlines.describe_s, metadata=self._metadata
            ),
        )
        for name in ("name", "version", "contract_version", "kind"):
            if not getattr(response, name):
                raise BackendContractError(f"Describe: required field {name} is missing")
            if name != "kind" and len(getattr(response, name)) > _MOST_NAME_CHARACTERS:
                raise BackendContractError(f"Describe: {name} has more than {_MOST_NAME_CHARACTERS} characters")
        return response

    def ingest(self, frames: Iterable[pb.IngestRequest]) -> tuple[pb.IngestResponse, int]:
        """Send one day; return the response and the duration in nanoseconds."""

        def call() -> tuple[pb.IngestResponse, int]:
            start = time.monotonic_ns()
            response = self._stub.Ingest(iter(frames), timeout=self.deadlines.ingest_s, metadata=self._metadata)
            return response, time.monotonic_ns() - start

        return self._run("Ingest", call)

    def search(self, request: pb.SearchRequest) -> TimedSearch:
        """Call Search once and time it, from request sent to response received.

        Raises :class:`BackendContractError` for invalid items.
        """

        def call() -> TimedSearch:
            start = time.monotonic_ns()
            response = self._stub.Search(request, timeout=self.deadlines.search_s, metadata=self._metadata)
            return TimedSearch(response, time.monotonic_ns() - start)

        timed = self._run("Search", call)
        _check_items("Search", timed.response.items)
        return timed

    def answer(self, request: pb.AnswerRequest, trace: AnswerTrace) -> None:
        """Stream an answer into ``trace``, which has the events so far also if the call fails.

        Raises :class:`BackendContractError` for invalid events or an invalid order of events.
        """

        def call() -> None:
            start = trace.started_mono_ns = time.monotonic_ns()
            events = self._stub.Answer(request, timeout=self.deadlines.answer_s, metadata=self._metadata)
            try:
                for event in events:
                    _record_event(trace, event, time.monotonic_ns() - start)
            finally:
                events.cancel()
            if trace.completed is None:
                raise BackendContractError("Answer: the stream ended without Completed")

        self._run("Answer", call)

    def reset(self, namespace: str) -> None:
        """Delete a namespace with Reset."""
        self._run(
            "Reset",
            lambda: self._stub.Reset(
                pb.ResetRequest(namespace=namespace), timeout=self.deadlines.reset_s, metadata=self._metadata
            ),
        )

    def forget(self, request: pb.ForgetRequest) -> None:
        """Delete a session, a subject or a fact; the timeout is that of Reset."""
        self._run(
            "Forget",
            lambda: self._stub.Forget(request, timeout=self.deadlines.reset_s, metadata=self._metadata),
        )

    def close(self) -> None:
        """Cancel running calls and close the connection; does nothing if it is closed already."""
        if not self._closed.is_set():
            self._closed.set()
            if self._connection is not None:
                self._connection.end()
            self._channel.close()
            self._thread.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, rpc: str, call: Callable[[], T]) -> T:
        """Run a call on the client's thread; convert gRPC errors to BackendCallError."""

        def guarded() -> T:
            try:
                return call()
            except grpc.RpcError as error:
                raise from_rpc_error(rpc, error) from error
            except ValueError as error:
                # grpc raises a bare ValueError for a call on a channel that was closed meanwhile.
                if self._closed.is_set():
                    raise BackendCallError(rpc, "CANCELLED", "the connection was closed") from error
                raise

        return self._thread.submit(guarded).result()


def _check_items(rpc: str, items: Sequence[pb.MemoryItem]) -> None:
    """Raise BackendContractError unless items fulfil SRC-3 and LIM-1 of SPEC.md; a log cannot store a score of NaN."""
    if len(items) > MAX_ITEMS:
        raise BackendContractError(f"{rpc}: {len(items)} items, the limit is {MAX_ITEMS}")
    for index, item in enumerate(items):
        if not math.isfinite(item.score):
            raise BackendContractError(f"{rpc}: items[{index}].score is {item.score}, not a finite number")
        if not item.text:
            raise BackendContractError(f"{rpc}: items[{index}].text is empty")


def _record_event(trace: AnswerTrace, event: pb.AnswerEvent, offset_ns: int) -> None:
    """Add an event to the trace. Raises BackendContractError for an invalid event or order of events."""
    kind = event.WhichOneof("event")
    if trace.completed is not None:
        raise BackendContractError(f"Answer: {kind} after completed")
    if (trace.retrieved is None) != (kind == "retrieved"):
        raise BackendContractError(f"Answer: {kind} where exactly one retrieved comes first")
    if kind == "retrieved":
        _check_items("Answer", event.retrieved.items)
        trace.retrieved, trace.retrieved_ns = event.retrieved, offset_ns
    elif kind == "text_delta":
        if not event.text_delta.text:
            raise BackendContractError("Answer: a text_delta without text")
        if trace.first_delta_ns is None:
            trace.first_delta_ns = offset_ns
        _append_delta(trace, event.text_delta.text)
    elif kind == "completed":
        # Without deltas the full text is in this event; with deltas it has been counted already.
        if not trace.deltas and len(event.completed.text.encode()) > MAX_ANSWER_BYTES:
            raise BackendContractError(f"Answer: more than {MAX_ANSWER_BYTES} bytes of text")
        if event.completed.text != "".join(trace.deltas):
            raise BackendContractError("Answer: the text of completed is not that of the text_deltas")
        trace.completed, trace.completed_ns = event.completed, offset_ns
    else:
        raise BackendContractError("Answer: an event that carries nothing")


def _append_delta(trace: AnswerTrace, text: str) -> None:
    """Append a delta. Raises BackendContractError beyond the limits, before an endless stream exhausts memory."""
    trace.text_bytes += len(text.encode())
    if len(trace.deltas) >= MAX_ANSWER_DELTAS:
        raise BackendContractError(f"Answer: more than {MAX_ANSWER_DELTAS} text_deltas")
    if trace.text_bytes > MAX_ANSWER_BYTES:
        raise BackendContractError(f"Answer: more than {MAX_ANSWER_BYTES} bytes of text")
    trace.deltas.append(text)
