"""Defines typed errors of calls to a backend, and converts gRPC errors to them."""

from __future__ import annotations

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from grpc_status import rpc_status

LONGEST_DELAY_S = 3600.0
"""Upper bound of a delay read from a RetryInfo; the caller decides how long to wait."""
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
    """A backend answered OK with content that violates the contract, which the message names."""


def from_rpc_error(rpc: str, error: grpc.RpcError) -> BackendCallError:
    """Convert a gRPC error, with its google.rpc details if it has any.

    The backend controls all of it, so details that do not parse are ignored and long texts are truncated.
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
    """Return the details of a status; empty if they do not parse or contradict the status line."""
    try:
        status = rpc_status.from_call(call)
    except (ValueError, DecodeError):
        return []
    return [] if status is None else list(status.details[:_MOST_DETAILS])


def _delay_s(delay: Duration) -> float | None:
    """Return a delay in seconds, at most :data:`LONGEST_DELAY_S`; None if it is negative."""
    seconds = delay.seconds + delay.nanos / 1e9
    return min(seconds, LONGEST_DELAY_S) if seconds >= 0 else None


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_CHARACTERS else f"{text[:_MESSAGE_CHARACTERS]}…"
