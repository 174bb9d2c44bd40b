"""Checks a backend's health: ``python -m memarena_backend.probe HOST:PORT`` exits with 0 if it is SERVING."""

from __future__ import annotations

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

TIMEOUT_S = 3.0


def is_serving(address: str) -> bool:
    """Whether a backend without TLS reports SERVING within three seconds. Raises grpc.RpcError without an answer."""
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        response = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    return bool(response.status == health_pb2.HealthCheckResponse.SERVING)


def main() -> int:
    """Return 0 for SERVING, 1 for anything else with the reason on standard error, 2 for a bad command line."""
    if len(sys.argv) != 2:
        sys.stderr.write("error: expected one argument, HOST:PORT\n")
        return 2
    try:
        if is_serving(sys.argv[1]):
            return 0
        reason = "not serving"
    except grpc.RpcError as error:
        reason = str(error.code().name)
    sys.stderr.write(f"{sys.argv[1]}: {reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
