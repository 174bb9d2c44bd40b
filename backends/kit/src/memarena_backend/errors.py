"""Defines the errors that end a call: a gRPC code, a message of one line, and the details that the contract asks for.

A memory raises them through the functions below; the transport turns them into a gRPC status. Any other exception
becomes INTERNAL with its type and message, never an empty result.
"""

from __future__ import annotations

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

MESSAGE_LIMIT_CHARS = 1_000
"""Length at which a message is cut: a status travels in HTTP/2 trailers, which peers cap at 8 KiB by default."""

_RETRY_AFTER_S = 1.0


class CallError(Exception):
    """Ends a call with a gRPC code.

    ``field`` is the path of the field at fault within the request, for example ``session.turns[3].text``; the message
    starts with it, and INVALID_ARGUMENT has it in a BadRequest as well. ``retry_after_s`` adds a RetryInfo, ``limit`` a
    QuotaFailure and an ErrorInfo.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        description: str,
        *,
        field: str | None = None,
        retry_after_s: float | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(description if field is None else f"{field}: {description}")
        self.code = code
        self.description = description
        self.field = field
        self.retry_after_s = retry_after_s
        self.limit = limit

    def within(self, parent: str) -> CallError:
        """Return the same error with its field prefixed by ``parent``, for a request nested in a larger one."""
        if self.field is None:
            return self
        return CallError(
            self.code,
            self.description,
            field=f"{parent}.{self.field}",
            retry_after_s=self.retry_after_s,
            limit=self.limit,
        )

    def to_status(self) -> status_pb2.Status:
        """Return the error as a google.rpc.Status, small enough for the trailers."""
        status = status_pb2.Status(code=self.code.value[0], message=_cut(str(self)))
        if self.field is not None and self.code is grpc.StatusCode.INVALID_ARGUMENT:
            bad_request = error_details_pb2.BadRequest()
            bad_request.field_violations.add(field=_cut(self.field), description=_cut(self.description))
            status.details.add().Pack(bad_request)
        if self.limit is not None:
            field = self.field or ""
            quota = error_details_pb2.QuotaFailure()
            quota.violations.add(subject=_cut(field), description=_cut(self.description))
            status.details.add().Pack(quota)
            metadata = {"field": field, "limit": str(self.limit)}
            info = error_details_pb2.ErrorInfo(reason="LIMIT_EXCEEDED", domain="memarena.v1", metadata=metadata)
            status.details.add().Pack(info)
        if self.retry_after_s is not None:
            delay = Duration()
            delay.FromMilliseconds(round(self.retry_after_s * 1000))
            status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
        return status


class PromptRefusedError(CallError):
    """A model rejects this prompt for good (because it is too long, for example); other prompts may still work.

    A memory may catch it, skip the part of its work that needed the prompt, and count that in a notice. If it is not
    caught, the call ends with UNAVAILABLE.
    """


def invalid_argument(field: str, description: str) -> CallError:
    """Return an INVALID_ARGUMENT: a field of the request is missing, malformed or not allowed there (ERR-2)."""
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, description, field=field)


def above_limit(field: str, size: int, limit: int, unit: str = "bytes") -> CallError:
    """Return a RESOURCE_EXHAUSTED: a field is larger than the contract or the backend's own limits allow (LIM-2)."""
    message = f"{size} {unit} are above the limit of {limit}"
    return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, field=field, limit=limit)


def failed_precondition(message: str) -> CallError:
    """Return a FAILED_PRECONDITION: the request is well formed, but the state of the memory does not allow it."""
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, message)


def unavailable(message: str, retry_after_s: float = _RETRY_AFTER_S) -> CallError:
    """Return an UNAVAILABLE with RetryInfo: the same call may succeed later."""
    return CallError(grpc.StatusCode.UNAVAILABLE, message, retry_after_s=retry_after_s)


def aborted(message: str, retry_after_s: float = _RETRY_AFTER_S) -> CallError:
    """Return an ABORTED with RetryInfo: another call on the namespace is pending (ERR-6)."""
    return CallError(grpc.StatusCode.ABORTED, message, retry_after_s=retry_after_s)


def data_loss(description: str, field: str | None = None) -> CallError:
    """Return a DATA_LOSS: received or stored data does not match its counts or digest."""
    return CallError(grpc.StatusCode.DATA_LOSS, description, field=field)


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT_CHARS else f"{text[: MESSAGE_LIMIT_CHARS - 1]}…"
