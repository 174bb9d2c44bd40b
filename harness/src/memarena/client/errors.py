"""Typed errors of calls to a backend."""

from __future__ import annotations

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from grpc_status import rpc_status

LONGEST_DELAY_S = 3600.0
"""Longest delay that is read out of a RetryInfo; how much of it is waited is the caller's decision."""
_MESSAGE_CHARACTERS = 2000
_MOST_DETAILS = 16


class BackendCallError(Exception):
    """A call to a backend failed.

    ``code`` is the gRPC status name (``UNAVAILABLE`` …), ``field`` the field that a BadRequest detail names, and
    ``retry_after_s`` the delay that a RetryInfo detail asks for.
    """

    def __init__(
        self, rpc: str, code: str, message: str, field: str | None = None, retry_after_s: float | None = None
    ) -> None:
        of_field = f" (field {field})" if field else ""
        super().__init__(f"{rpc}: {code}{of_field}: {message}")
        self.rpc = rpc
        self.code = code
        self.message = message
        self.field = field
        self.retry_after_s = retry_after_s

    @property
    def may_retry(self) -> bool:
        """Whether the contract allows the same call again, outside timed calls (SPEC.md ERR)."""
        return self.code in {"UNAVAILABLE", "ABORTED"}


class BackendContractError(Exception):
    """A backend answered OK with something that the contract forbids; the message says what."""


def from_rpc_error(rpc: str, error: grpc.RpcError) -> BackendCallError:
    """The typed form of a gRPC error, with its google.rpc details where it has any.

    All of it is a backend's word: what cannot be read is left out, what is too long is cut. The status line counts.
    """
    call: object = error
    if not isinstance(call, grpc.Call):
        return BackendCallError(rpc, "UNKNOWN", _cut(str(error)))
    field: str | None = None
    retry_after_s: float | None = None
    for detail in _details(call):
        bad_request, retry = error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        try:
            if detail.Unpack(bad_request) and bad_request.field_violations:
                field = _cut(bad_request.field_violations[0].field)
            elif detail.Unpack(retry):
                retry_after_s = _delay_s(retry.retry_delay)
        except DecodeError:
            continue
    return BackendCallError(rpc, call.code().name, _cut(call.details() or ""), field, retry_after_s)


def _details(call: grpc.Call) -> list[Any]:
    """None where they do not parse, or contradict the status line."""
    try:
        status = rpc_status.from_call(call)
    except (ValueError, DecodeError):
        return []
    return [] if status is None else list(status.details[:_MOST_DETAILS])


def _delay_s(delay: Duration) -> float | None:
    """Seconds, at most :data:`LONGEST_DELAY_S`; None for a delay before now. A Duration's fields hold any number."""
    seconds = delay.seconds + delay.nanos / 1e9
    return min(seconds, LONGEST_DELAY_S) if seconds >= 0 else None


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_CHARACTERS else f"{text[:_MESSAGE_CHARACTERS]}…"
