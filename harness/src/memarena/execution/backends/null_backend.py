"""Serves the null backend, which does nothing, as fast as the contract allows: its round trip is this machine's floor.

The floor is the time that harness, gRPC and machine take without any memory. Ingest reads the frames and keeps none,
Search returns one fixed item.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto import memory_backend_pb2_grpc as pb_grpc

_ITEM = pb.MemoryItem(text="nothing", score=1.0)


class NullBackend(pb_grpc.MemoryBackendServicer):
    """Answers every call at once."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:  # noqa: N802 (the contract names it)
        return pb.DescribeResponse(
            name="null",
            version="1",
            contract_version="1.0",
            kind=pb.BACKEND_KIND_DIAGNOSTIC,
            capabilities=[pb.CAPABILITY_TIME_TRAVEL],
            digest_versions=[1],
        )

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:  # noqa: N802 (the contract names it)
        day = 0
        for frame in request_iterator:
            if frame.HasField("header"):
                day = frame.header.day_index
        return pb.IngestResponse(visible_through_day=day)

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:  # noqa: N802 (the contract names it)
        began = time.perf_counter()
        response = pb.SearchResponse(items=[_ITEM], visible_through_day=request.as_of_day)
        response.search_time_us = int((time.perf_counter() - began) * 1e6)
        return response

    def Answer(  # noqa: N802 (the contract names it)
        self, request: pb.AnswerRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.AnswerEvent]:
        context.set_code(grpc.StatusCode.UNIMPLEMENTED)
        context.set_details("the null backend has no Answer")
        return iter(())

    def Forget(self, request: pb.ForgetRequest, context: grpc.ServicerContext) -> pb.ForgetResponse:  # noqa: N802 (the contract names it)
        context.set_code(grpc.StatusCode.UNIMPLEMENTED)
        return pb.ForgetResponse()

    def Reset(self, request: pb.ResetRequest, context: grpc.ServicerContext) -> pb.ResetResponse:  # noqa: N802 (the contract names it)
        return pb.ResetResponse()


def serve(listen: str) -> tuple[grpc.Server, str]:
    """Start a null backend; return server and address. ``listen`` is HOST:PORT; port 0 lets the system choose one."""
    server = grpc.server(ThreadPoolExecutor(max_workers=4), options=[("grpc.so_reuseport", 0)])
    pb_grpc.add_MemoryBackendServicer_to_server(NullBackend(), server)
    state = health.HealthServicer()
    state.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(state, server)
    port = server.add_insecure_port(listen)
    server.start()
    return server, f"{listen.rpartition(':')[0]}:{port}"


def main() -> None:
    """Entry of ``python -m memarena.execution.backends.null_backend``."""
    parser = argparse.ArgumentParser(description="A memory backend that does nothing, for measuring the floor.")
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--address-file", type=Path)
    arguments = parser.parse_args()
    try:
        server, address = serve(arguments.listen)
    except RuntimeError as error:
        print(f"error: --listen {arguments.listen}: cannot be bound: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    if arguments.address_file:
        temporary = arguments.address_file.with_suffix(".tmp")
        temporary.write_text(f"{address}\n", encoding="utf-8")
        temporary.replace(arguments.address_file)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(grace=0.5))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
