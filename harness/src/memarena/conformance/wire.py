"""Connects the suite to a backend: sends any call, also an invalid one, with a deadline, and parses its errors."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto import memory_backend_pb2_grpc as pb_grpc

from memarena.client.backend import Security
from memarena.client.enums import enum_name
from memarena.conformance.errors import SkippedError

SERVICE = pb.DESCRIPTOR.services_by_name["MemoryBackend"].full_name

_OPTIONS = (
    ("grpc.enable_retries", 0),
    # The limit of a response is for a check to enforce, not for the transport.
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
)

Q = TypeVar("Q")
T = TypeVar("T")

_PENDING = " (as long as it is pending, ABORTED is expected: ERR-6)"
MINOR_VERSION = 2
"""Minor version of the contract that the suite checks."""


class RefusedError(Exception):
    """A call ended with an error. ``fields``: those that its BadRequest names; ``details``: ErrorInfo, QuotaFailure."""

    def __init__(
        self, rpc: str, code: str, message: str, fields: tuple[str, ...], details: tuple[str, ...] = ()
    ) -> None:
        where = f" naming {', '.join(fields)}" if fields else ""
        super().__init__(f"{rpc}: {code}{where}: {message[:300]}")
        self.rpc = rpc
        self.code = code
        self.message = message
        self.fields = tuple(fields)
        self.details = tuple(details)


@dataclass(frozen=True)
class Received:
    """The events of an Answer in order, and the error that ended it, None if it ended OK."""

    events: tuple[pb.AnswerEvent, ...]
    refused: RefusedError | None

    def kinds(self) -> list[str]:
        """Return the names of the events in order."""
        return [event.WhichOneof("event") or "nothing" for event in self.events]

    @property
    def completed(self) -> pb.Completed | None:
        """Return the last Completed, None if there is none."""
        return next((event.completed for event in reversed(self.events) if event.HasField("completed")), None)


class Connection:
    """Calls to one address. A call ends within ``timeout_s``, unless it has another deadline.

    ``hung`` counts the calls that timed out although the suite withheld nothing from the backend, ``lost`` the calls
    that ended with UNAVAILABLE.
    """

    def __init__(self, target: str, security: Security, timeout_s: float) -> None:
        self.target = target
        self.security = security
        self.timeout_s = timeout_s
        self.hung = 0
        self.lost = 0
        self.namespaces: set[str] = set()
        """Every namespace that a check created."""
        self.names_of_others: list[str] = []
        """Messages about errors of a call on one namespace that name another namespace."""
        self.ended: dict[str, list[str]] = {}
        """RPC and code of each call that failed, oldest first, by namespace."""
        self.missing: frozenset[str] = frozenset()
        """RPCs that the backend does not implement yet: a check that calls one is skipped."""
        if security.tls_ca is not None:
            credentials = grpc.ssl_channel_credentials(security.tls_ca.read_bytes())
            self._channel = grpc.secure_channel(target, credentials, options=_OPTIONS)
        else:
            self._channel = grpc.insecure_channel(target, options=_OPTIONS)
        self._stub = pb_grpc.MemoryBackendStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)
        token = security.bearer_token
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)

    def close(self) -> None:
        """Cancel the pending calls and close the connection."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------- calls; each raises RefusedError

    def describe(self, minor_version: int = MINOR_VERSION) -> pb.DescribeResponse:
        caller = pb.DescribeRequest(caller_minor_version=minor_version)
        return self._unary("Describe", self._stub.Describe, caller)

    def ingest(self, frames: Iterable[pb.IngestRequest], deadline_s: float | None = None) -> pb.IngestResponse:
        sent = list(frames)
        return self._call(
            "Ingest",
            lambda timeout: self._stub.Ingest(iter(sent), timeout=timeout, metadata=self._metadata),
            deadline_s,
            namespace=next((frame.header.namespace for frame in sent if frame.HasField("header")), ""),
        )

    def search(self, request: pb.SearchRequest, deadline_s: float | None = None) -> pb.SearchResponse:
        return self._unary("Search", self._stub.Search, request, request.namespace, deadline_s)

    def answer(
        self,
        request: pb.AnswerRequest,
        deadline_s: float | None = None,
        on_event: Callable[[pb.AnswerEvent], None] = lambda _: None,
    ) -> Received:
        """Stream an answer to its end; an error is returned, not raised."""
        events: list[pb.AnswerEvent] = []

        def drain(timeout: float) -> None:
            call = self._stub.Answer(request, timeout=timeout, metadata=self._metadata)
            try:
                for event in call:
                    events.append(event)
                    on_event(event)
            finally:
                call.cancel()

        try:
            self._call("Answer", drain, deadline_s, namespace=request.search.namespace)
        except RefusedError as error:
            return Received(tuple(events), error)
        return Received(tuple(events), None)

    def reset(self, namespace: str) -> None:
        self._unary("Reset", self._stub.Reset, pb.ResetRequest(namespace=namespace), namespace)

    def forget(self, request: pb.ForgetRequest) -> pb.ForgetResponse:
        return self._unary("Forget", self._stub.Forget, request, request.namespace)

    def searches(self, request: pb.SearchRequest, count: int) -> list[RefusedError]:
        """Send ``count`` equal searches at the same time and return the errors of those that failed."""
        send = partial(self._stub.Search.future, request, timeout=self.timeout_s, metadata=self._metadata)
        errors = [call.exception() for call in [send() for _ in range(count)]]
        return [refusal("Search", error) for error in errors if isinstance(error, grpc.RpcError)]

    def raw(self, rpc: str, *sent: bytes) -> None:
        """Call an RPC by name with messages as bytes, for content that no message can express."""
        path = f"/{SERVICE}/{rpc}"
        if rpc == "Ingest":
            stream = self._channel.stream_unary(path, _as_is, _as_is)
            self._call(rpc, lambda timeout: stream(iter(sent), timeout=timeout, metadata=self._metadata))
        else:
            self._unary(rpc, self._channel.unary_unary(path, _as_is, _as_is), sent[0])

    def health(self, service: str = "", deadline_s: float | None = None) -> str:
        """Return the status by name, such as ``SERVING`` or ``unknown_7``. Sent without the bearer token (SEC-3)."""
        response = self._call(
            "Health",
            lambda timeout: self._health.Check(health_pb2.HealthCheckRequest(service=service), timeout=timeout),
            deadline_s,
        )
        return enum_name(health_pb2.HealthCheckResponse.ServingStatus.DESCRIPTOR, response.status)

    def open_ingest(self, frames: Iterable[pb.IngestRequest], deadline_s: float) -> OpenIngest:
        """Start an Ingest that sends ``frames`` and then keeps its stream open."""
        return OpenIngest(self, list(frames), deadline_s)

    # ---------------------------------------------------------------- internals

    def start_ingest(self, frames: Iterator[pb.IngestRequest], deadline_s: float) -> grpc.Future[pb.IngestResponse]:
        """Start an Ingest and return its future."""
        return self._stub.Ingest.future(frames, timeout=deadline_s, metadata=self._metadata)

    def _unary(
        self,
        rpc: str,
        method: grpc.UnaryUnaryMultiCallable[Q, T],
        request: Q,
        namespace: str | None = None,
        deadline_s: float | None = None,
    ) -> T:
        return self._call(
            rpc,
            lambda timeout: method(request, timeout=timeout, metadata=self._metadata),
            deadline_s,
            namespace=namespace,
        )

    def _call(
        self, rpc: str, call: Callable[[float], T], deadline_s: float | None = None, *, namespace: str | None = None
    ) -> T:
        try:
            return call(self.timeout_s if deadline_s is None else deadline_s)
        except grpc.RpcError as error:
            refused = refusal(rpc, error)
            self.ended.setdefault(namespace or "", []).append(f"{rpc} with {refused.code}")
            if namespace is not None and (other := self._named(refused, namespace)) is not None:
                self.names_of_others.append(f"a call on the namespace {namespace} ended with {other} in its error")
            self.lost += refused.code == "UNAVAILABLE"
            if refused.code == "UNIMPLEMENTED" and rpc in self.missing:
                raise SkippedError(f"{rpc} is UNIMPLEMENTED so far") from error
            if refused.code == "DEADLINE_EXCEEDED" and deadline_s is None:
                self.hung += 1
                refused = RefusedError(rpc, refused.code, f"no answer within {self.timeout_s:g} s", ())
            raise refused from error

    def _named(self, refused: RefusedError, namespace: str) -> str | None:
        """Return another namespace than the call's that the error names, with the error; None if it names none."""
        text = " ".join((refused.message, *refused.fields, *refused.details))
        own = text.replace(namespace, " ") if namespace else text
        # Ids of sessions and turns have the same prefix as namespaces, so only a whole id counts.
        others = set(re.findall(r"[\w-]+", own)) & self.namespaces - {namespace}
        return f"{min(others)} ({refused})" if others else None


class OpenIngest:
    """An Ingest that sends its first frames and withholds the others until it is cancelled or times out."""

    def __init__(self, connection: Connection, frames: list[pb.IngestRequest], deadline_s: float) -> None:
        self._frames = frames
        self._sent = threading.Event()
        self._over = threading.Event()
        self._deadline_s = deadline_s
        self._ended = connection.ended.setdefault(frames[0].header.namespace, [])
        self._call = connection.start_ingest(self._stream(), deadline_s)
        self._call.add_done_callback(lambda _: self._sent.set())

    def _stream(self) -> Iterator[pb.IngestRequest]:
        yield from self._frames
        self._sent.set()
        self._over.wait(self._deadline_s + 1.0)

    def wait_until_sent(self) -> None:
        """Wait until the frames are sent, or the backend ended the call early."""
        self._sent.wait(self._deadline_s)

    def cancel(self) -> None:
        """Cancel the call, as a caller does that goes away."""
        self._ended.append(f"Ingest, which was cancelled{_PENDING}")
        self._call.cancel()
        self._over.set()

    def outlast(self) -> str:
        """Wait for the deadline and return the code with which the call ended."""
        self._ended.append(f"Ingest, whose deadline passed{_PENDING}")
        try:
            self._call.result(timeout=self._deadline_s + 5.0)
        except (grpc.RpcError, grpc.FutureTimeoutError, grpc.FutureCancelledError) as error:
            self._over.set()
            return refusal("Ingest", error).code if isinstance(error, grpc.RpcError) else "NO_END"
        self._over.set()
        return "OK"


def refusal(rpc: str, error: grpc.RpcError) -> RefusedError:
    """Return the error of a call with the fields that its BadRequest names."""
    call: object = error
    if not isinstance(call, grpc.Call):
        return RefusedError(rpc, "UNKNOWN", str(error), ())
    fields: list[str] = []
    details: list[str] = []
    try:
        status = rpc_status.from_call(call)
    except ValueError:
        status = None  # details that contradict the status line are ignored
    for detail in status.details if status is not None else ():
        bad_request, quota = error_details_pb2.BadRequest(), error_details_pb2.QuotaFailure()
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(bad_request):
            fields += [_without_indices(violation.field) for violation in bad_request.field_violations]
        elif detail.Unpack(quota):
            details += [f"{violation.subject} {violation.description}" for violation in quota.violations]
        elif detail.Unpack(info):
            details += [info.reason, *(f"{key} {value}" for key, value in sorted(info.metadata.items()))]
    message = call.details() or ""
    if "deserializing" in message:
        message = f"the response cannot be read, as where a string is no UTF-8: was a character cut in two? ({message})"
    return RefusedError(rpc, call.code().name, message, tuple(fields), tuple(details))


def _without_indices(path: str) -> str:
    return ".".join(part.partition("[")[0] for part in path.split("."))


def _as_is(data: bytes) -> bytes:
    return data
