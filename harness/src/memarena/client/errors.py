"""Typed errors of calls to a backend."""

from __future__ import annotations

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status


class BackendCallError(Exception):
    """A call to a backend failed.

    ``code`` is the gRPC status name (``UNAVAILABLE`` …), ``field`` the field that a BadRequest detail names, and
    ``retry_after_s`` the delay that a RetryInfo detail asks for.
    """

    def __init__(
        self, rpc: str, code: str, message: str, field: str | None = None, retry_after_s: float | None = None
    ) -> None:
        where = f" (field {field})" if field else ""
        super().__init__(f"{rpc}: {code}{where}: {message}")
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
    """The typed form of a gRPC error, with its google.rpc details where it has any."""
    call: object = error
    if not isinstance(call, grpc.Call):
        return BackendCallError(rpc, "UNKNOWN", str(error))
    field: str | None = None
    retry_after_s: float | None = None
    try:
        status = rpc_status.from_call(call)
    except ValueError:
        # Details that contradict the status line are the backend's mistake; the status line still counts.
        status = None
    for detail in status.details if status is not None else ():
        bad_request, retry = error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if detail.Unpack(bad_request) and bad_request.field_violations:
            field = bad_request.field_violations[0].field
        elif detail.Unpack(retry):
            retry_after_s = retry.retry_delay.ToTimedelta().total_seconds()
    return BackendCallError(rpc, call.code().name, call.details() or "", field, retry_after_s)
