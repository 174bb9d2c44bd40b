"""Lets the gate use a backend at an address as its underlying memory, over the contract.

The gate's own server keeps the days and decides which count. It sends each day to the backend as a batch whose id
follows from the day's content. After a restart it sends all days again, which is a replay for days that the backend
already has; if the backend holds anything else, it is reset first. A failure of the backend ends the call with a status
that names its address, never with an empty result.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from memarena_backend import (
    Call,
    CallError,
    Capability,
    Day,
    Description,
    Memory,
    Notice,
    Query,
    Retention,
    SearchResult,
    ServeError,
    unavailable,
)
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto import memory_backend_pb2_grpc as pb_grpc

from memarena_backend_gated.settings import Remote
from memarena_backend_gated.wire import description_of, frames_of, notices_of, result_of, search_of

_log = logging.getLogger(__name__)

START_S = 15.0
"""How long the gate waits at its start for the backend to accept connections."""
DESCRIBE_S = 10.0
LOOK_S = 1.0
"""Interval of checks of the backend's health, and of whether the caller of a pending call still waits."""
_OPTIONS = (
    # One attempt for one call: a retry inside gRPC would be in the timed search.
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
)
_OF_THE_CALLER = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Codes that the gate passes on, as the caller can act on them; others become UNAVAILABLE or INTERNAL."""
# Codes of an Ingest by which the backend shows that it holds other days than the gate's server.
_OTHER_DAYS = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ALREADY_EXISTS})


class BeneathError(CallError):
    """A call to the underlying backend failed. ``beneath`` is the backend's status code, ``code`` that of the gate."""

    def __init__(self, error: CallError, beneath: grpc.StatusCode) -> None:
        super().__init__(
            error.code, error.description, field=error.field, retry_after_s=error.retry_after_s, limit=error.limit
        )
        self.beneath = beneath


class RemoteMemory(Memory):
    """A memory served by a backend at an address. Raises ServeError if it cannot be reached or described."""

    def __init__(self, remote: Remote) -> None:
        self._address = remote.address
        self._metadata = (("authorization", f"Bearer {remote.token}"),) if remote.token else ()
        self._channel = _channel(remote)
        self._stub = pb_grpc.MemoryBackendStub(self._channel)
        self._closed = threading.Event()
        self._same: set[str] = set()
        """Namespaces in which the backend holds the same days as the gate's server."""
        try:
            self._description = self._described()
        except BaseException:
            self._channel.close()
            raise

    def _described(self) -> Description:
        """Return the description of the backend. Raises ServeError if it cannot be reached or is invalid."""
        try:
            grpc.channel_ready_future(self._channel).result(timeout=START_S)
            response = self._stub.Describe(
                pb.DescribeRequest(caller_minor_version=2), timeout=DESCRIBE_S, metadata=self._metadata
            )
            return description_of(response)
        except grpc.FutureTimeoutError:
            problem = f"no backend can be reached there within {START_S:g} s"
        except grpc.RpcError as error:
            problem = f"Describe failed: {_words(error)}"
        except ValueError as error:
            problem = f"Describe: {error}"
        raise ServeError(f"GATED_ADDRESS: {self._address}: {problem}")

    def describe(self) -> Description:
        below = self._description
        # The gate itself serves Answer, over the items of Search. After a Forget it sends the remaining days again, and
        # without access to models, so an extracting backend cannot support Forget.
        dropped = {Capability.FORGET} if below.retention is Retention.EXTRACTED else set()
        return replace(below, capabilities=(below.capabilities | {Capability.ANSWER}) - dropped)

    # -------------------------------------------------------------- Ingest

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        if namespace not in self._same:
            # No day is committed yet: anything the backend holds is of a failed day, or of another client.
            self._reset(namespace, call)
        response = self._ingest(namespace, day, call)
        self._same.add(namespace)
        return notices_of(response.notices)

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        all_days = list(days)
        try:
            last = [self._ingest(namespace, day, call).visible_through_day for day in all_days][-1:]
        except BeneathError as error:
            if error.beneath not in _OTHER_DAYS:
                raise
            last = []
        if last != [day.index for day in all_days[-1:]]:
            self._reset(namespace, call)
            for day in all_days:
                self._ingest(namespace, day, call)
        self._same.add(namespace)

    def unload(self, namespace: str) -> None:
        self._same.discard(namespace)

    def forget(self, namespace: str) -> None:
        self._same.discard(namespace)
        self._reset(namespace, Call.internal())

    def _ingest(self, namespace: str, day: Day, call: Call) -> pb.IngestResponse:
        frames = frames_of(namespace, day, call.models)
        response: pb.IngestResponse = self._ask("Ingest", self._stub.Ingest, iter(frames), call)
        return response

    def _reset(self, namespace: str, call: Call) -> None:
        self._ask("Reset", self._stub.Reset, pb.ResetRequest(namespace=namespace), call)

    # -------------------------------------------------------------- Search

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        keys = [option.key for option in self._description.options]
        request = search_of(namespace, query, keys, call.models)
        response: pb.SearchResponse = self._ask("Search", self._stub.Search, request, call)
        if response.visible_through_day != query.as_of_day:
            raise CallError(
                grpc.StatusCode.INTERNAL,
                f"{self._line('Search')}: it sees through day {response.visible_through_day}, "
                f"the last committed day is {query.as_of_day}",
            )
        return result_of(response)

    # -------------------------------------------------------------- calls

    def _ask(self, rpc: str, method: Any, request: object, call: Call) -> Any:
        """Send a request once and return the response, or cancel it when the caller's call ends.

        Raises BeneathError that names the address if the backend fails.
        """
        future = method.future(request, timeout=call.remaining_s(), metadata=self._metadata)
        try:
            while True:
                try:
                    return future.result(timeout=LOOK_S)
                except grpc.FutureTimeoutError:
                    call.check()
        except grpc.RpcError as error:
            _log.warning("%s: %s", self._line(rpc), _words(error))
            call.check()
            raise self._failed(rpc, error) from error
        finally:
            future.cancel()

    def _failed(self, rpc: str, error: grpc.RpcError) -> BeneathError:
        code = error.code()
        line = f"{self._line(rpc)}: {_words(error)}"
        if code in _OF_THE_CALLER:
            return BeneathError(CallError(code, line, field=_field_of(error)), code)
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.CANCELLED):
            return BeneathError(unavailable(line), code)
        return BeneathError(CallError(grpc.StatusCode.INTERNAL, line), code)

    def _line(self, rpc: str) -> str:
        return f"the backend beneath at {self._address} failed {rpc}"

    # -------------------------------------------------------------- health

    def watch(self, serving: Callable[[bool], None]) -> None:
        """Report when the backend stops or starts to serve; without a health service it counts as serving always."""
        threading.Thread(target=self._watch, args=(serving,), name="health-beneath", daemon=True).start()

    def _watch(self, serving: Callable[[bool], None]) -> None:
        health = health_pb2_grpc.HealthStub(self._channel)
        last = True
        for now in iter(lambda: self._serves(health), None):
            if now != last:
                _log.warning("the backend beneath at %s %s", self._address, "serves" if now else "does not serve")
                serving(now)
                last = now
            if self._closed.wait(LOOK_S):
                return

    def _serves(self, health: health_pb2_grpc.HealthStub) -> bool | None:
        """Whether the backend serves, even slowly (HLT-4); None without a health service or with a closed channel."""
        try:
            response = health.Check(health_pb2.HealthCheckRequest(), timeout=DESCRIBE_S, metadata=self._metadata)
        except grpc.RpcError as error:
            code = error.code()
            return None if code is grpc.StatusCode.UNIMPLEMENTED else code is not grpc.StatusCode.UNAVAILABLE
        except ValueError:  # the channel was closed meanwhile
            return None
        return bool(response.status == health_pb2.HealthCheckResponse.SERVING)

    def close(self) -> None:
        self._closed.set()
        self._channel.close()


def _channel(remote: Remote) -> grpc.Channel:
    if remote.tls_ca is None:
        return grpc.insecure_channel(remote.address, options=_OPTIONS)
    return grpc.secure_channel(remote.address, grpc.ssl_channel_credentials(remote.tls_ca), options=_OPTIONS)


def _field_of(error: grpc.RpcError) -> str | None:
    """Return the field that a BadRequest of the backend beneath names, None without one (ERR-2)."""
    try:
        status = rpc_status.from_call(error)
    except ValueError:
        return None  # details that contradict the status line
    for detail in status.details if status is not None else ():
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(bad_request) and bad_request.field_violations:
            return str(bad_request.field_violations[0].field)
    return None


def _words(error: grpc.RpcError) -> str:
    return f"{error.code().name} {error.details() or ''}".strip()
