"""Serves a memory over gRPC, with health and reflection, and optionally TLS and a bearer token.

It uses grpc's synchronous server, not the asyncio one. Measured on two cores (grpcio 1.85.1, ten items, 4.3 kB): Search
p50 0.25 to 0.37 ms against 0.28 to 0.37 ms, so neither is faster; but memories block (SQLite, numpy, HTTP calls of
a reader), and on an event loop a blocking memory would stall every other call of the process.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memarena_backend.engine import Engine
from memarena_backend.limits import REQUEST_RECEIVE_BYTES
from memarena_backend.memory import Memory
from memarena_backend.servicer import Servicer
from memarena_backend.store import DayStore
from memarena_backend.transport import SERVICE

WORKER_THREADS = 32
"""Calls at the same time. An Ingest holds a thread while its frames arrive, an Answer while the reader generates."""

STOP_GRACE_S = 0.5
"""How long calls in flight may take to end when the server stops."""

CLOSE_GRACE_S = 1.0
"""How long the memory may then take to close its files, before the process exits regardless."""

MemoryFactory = Callable[[Path], Memory]
"""Makes a memory from a folder in which it may keep its files."""

_RequestT = TypeVar("_RequestT")
_ResponseT = TypeVar("_ResponseT")


class ServeError(Exception):
    """The server cannot be started; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Security:
    """Transport security. ``tls`` is (certificate chain, private key) in PEM; everything is off by default."""

    tls: tuple[bytes, bytes] | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)


class BackendServer:
    """Serves a memory from construction until :meth:`stop`; ``address`` is the bound HOST:PORT.

    Raises StoreError if ``data_dir`` cannot be used, :class:`ServeError` if ``listen`` cannot be bound.
    """

    def __init__(
        self, make_memory: MemoryFactory, data_dir: Path, listen: str, security: Security = Security()
    ) -> None:
        with ExitStack() as opened:
            store = DayStore(data_dir)
            opened.callback(store.close)
            memory = make_memory(data_dir)
            opened.callback(memory.close)
            servicer = Servicer(Engine(memory, store))
            opened.callback(servicer.close)
            self._health = health.HealthServicer(experimental_non_blocking=True)
            self._server = _server(servicer, self._health, security)
            self.address = _bind(self._server, listen, security)
            self._server.start()
            self._opened = opened.pop_all()
        self._report(serving=True)
        memory.watch(lambda serving: self._report(serving=serving))

    def _report(self, *, serving: bool) -> None:
        response = health_pb2.HealthCheckResponse
        for service in ("", SERVICE):
            self._health.set(service, response.SERVING if serving else response.NOT_SERVING)

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Refuse new calls, wait up to ``grace_s`` for those in flight, and close everything. Committed days stay."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_s).wait()
        self._opened.close()


def _server(servicer: Servicer, health_servicer: health.HealthServicer, security: Security) -> grpc.Server:
    server = grpc.server(
        ThreadPoolExecutor(WORKER_THREADS, thread_name_prefix="rpc"),
        interceptors=[] if security.bearer_token is None else [_BearerToken(security.bearer_token)],
        options=[
            # With SO_REUSEPORT two servers could share a port, and "port in use" would go unnoticed.
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", REQUEST_RECEIVE_BYTES),
            ("grpc.max_send_message_length", -1),
        ],
    )
    handlers = servicer.handlers()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_registered_method_handlers(SERVICE, handlers)
    health_servicer.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    health_servicer.set(SERVICE, health_pb2.HealthCheckResponse.NOT_SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    return server


def _bind(server: grpc.Server, listen: str, security: Security) -> str:
    """Listen on HOST:PORT and return it with the actual port. Raises ServeError."""
    host, separator, port = listen.rpartition(":")
    if not (separator and host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise ServeError(f"--listen {listen}: expected HOST:PORT")
    _check_free(host, int(port))
    try:
        if security.tls is None:
            bound = server.add_insecure_port(listen)
        else:
            chain, key = security.tls
            bound = server.add_secure_port(listen, grpc.ssl_server_credentials([(key, chain)]))
    except (RuntimeError, ValueError) as error:
        raise ServeError(f"--listen {listen}: cannot listen there (are certificate and key sound?)") from error
    return f"{host}:{bound}"


def _check_free(host: str, port: int) -> None:
    """Raise ServeError if the port is in use. gRPC would print its own line and not say why it failed."""
    try:
        addresses = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = addresses[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ServeError(f"--listen {host}:{port}: {error.strerror or error}") from error


class _BearerToken(grpc.ServerInterceptor):
    """Refuses calls without the token, health excepted (SEC-3)."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        self._refusal: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(_refuse)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[_RequestT, _ResponseT] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[_RequestT, _ResponseT] | None:
        if handler_call_details.method.startswith(f"/{health.SERVICE_NAME}/"):
            return continuation(handler_call_details)
        token = dict(handler_call_details.invocation_metadata).get("authorization", "")
        token_bytes = token if isinstance(token, bytes) else token.encode()
        if hmac.compare_digest(token_bytes, self._expected):
            return continuation(handler_call_details)
        return self._refusal


def _refuse(requests: object, context: grpc.ServicerContext) -> NoReturn:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "expected the metadata authorization: Bearer <token>")
