"""Connects gRPC to the servicer: parses requests, and turns every error into a gRPC status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Generic, NoReturn, TypeVar, cast

import grpc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from grpc_status import rpc_status
from memarena_proto import memory_backend_pb2 as pb

from memarena_backend.errors import CallError, above_limit, invalid_argument
from memarena_backend.limits import FRAME_BYTES
from memarena_backend.utf8 import path_of_bad_utf8

_log = logging.getLogger(__name__)

SERVICE = pb.DESCRIPTOR.services_by_name["MemoryBackend"].full_name

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class Incoming(Generic[RequestT]):
    """A request, or the error of parsing it.

    gRPC itself would answer INTERNAL to a request that cannot be parsed; the contract asks for a code and a field.
    """

    __slots__ = ("_error", "_message")

    def __init__(self, message: RequestT | None, error: CallError | None) -> None:
        self._message = message
        self._error = error

    def unwrap(self) -> RequestT:
        """Return the request. Raises CallError if it is above 1 MiB or cannot be parsed."""
        if self._message is None:
            assert self._error is not None
            raise self._error
        return self._message


def _parser(message_type: type[RequestT]) -> Callable[[bytes], Incoming[RequestT]]:
    """Return a deserializer that gives the error of a message too large or invalid instead of raising."""
    descriptor = cast(Descriptor, message_type.DESCRIPTOR)

    def parse(data: bytes) -> Incoming[RequestT]:
        if len(data) > FRAME_BYTES:
            return Incoming(
                None, above_limit(_frame_name(message_type, data) or descriptor.name, len(data), FRAME_BYTES)
            )
        try:
            return Incoming(message_type.FromString(data), None)
        except DecodeError as error:
            path = path_of_bad_utf8(data, descriptor)
            if path is not None:
                return Incoming(None, invalid_argument(path, "is not valid UTF-8"))
            return Incoming(None, invalid_argument(descriptor.name, f"cannot be parsed: {error}"))

    return parse


def _frame_name(message_type: type[Message], data: bytes) -> str | None:
    """Return the name of an Ingest message's frame, from its first tag; None for other messages."""
    if message_type is not pb.IngestRequest:
        return None
    # The lower three bits of a tag are the wire type, the others the number of the field.
    field = message_type.DESCRIPTOR.fields_by_number.get(data[0] >> 3)
    return None if field is None else field.name


def unary(
    message_type: type[RequestT], method: Callable[[RequestT, grpc.ServicerContext], ResponseT]
) -> grpc.RpcMethodHandler[Incoming[RequestT], ResponseT]:
    """Return the handler of a unary RPC."""

    def handle(incoming: Incoming[RequestT], context: grpc.ServicerContext) -> ResponseT:
        try:
            return method(incoming.unwrap(), context)
        except Exception as error:  # noqa: BLE001 (every failure becomes a status)
            _end(error, context)

    return grpc.unary_unary_rpc_method_handler(handle, _parser(message_type), _serialise)


def client_stream(
    message_type: type[RequestT], method: Callable[[Iterator[RequestT], grpc.ServicerContext], ResponseT]
) -> grpc.RpcMethodHandler[Incoming[RequestT], ResponseT]:
    """Return the handler of an RPC with a stream of requests."""

    def handle(incoming: Iterator[Incoming[RequestT]], context: grpc.ServicerContext) -> ResponseT:
        try:
            return method((request.unwrap() for request in incoming), context)
        except Exception as error:  # noqa: BLE001
            _end(error, context)

    return grpc.stream_unary_rpc_method_handler(handle, _parser(message_type), _serialise)


def server_stream(
    message_type: type[RequestT], method: Callable[[RequestT, grpc.ServicerContext], Iterator[ResponseT]]
) -> grpc.RpcMethodHandler[Incoming[RequestT], ResponseT]:
    """Return the handler of an RPC with a stream of responses."""

    def handle(incoming: Incoming[RequestT], context: grpc.ServicerContext) -> Iterator[ResponseT]:
        try:
            yield from method(incoming.unwrap(), context)
        except Exception as error:  # noqa: BLE001
            _end(error, context)

    return grpc.unary_stream_rpc_method_handler(handle, _parser(message_type), _serialise)


def _serialise(message: Message) -> bytes:
    return message.SerializeToString()


def _end(error: Exception, context: grpc.ServicerContext) -> NoReturn:
    """End the call with the status of an error; any error but CallError becomes INTERNAL and is logged."""
    if not isinstance(error, CallError):
        if isinstance(error, grpc.RpcError) and not context.is_active():
            # grpc raises this in a handler that reads a stream when the client has gone.
            error = CallError(grpc.StatusCode.CANCELLED, "the client went away")
        else:
            _log.exception("a call failed", exc_info=error)
            error = CallError(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")
    _log.debug("call ends with %s: %s", error.code.name, error)
    context.abort_with_status(rpc_status.to_status(error.to_status()))
    raise AssertionError("abort_with_status returned")
