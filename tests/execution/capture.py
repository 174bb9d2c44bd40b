"""A backend that records the exact bytes of every request; it remembers nothing and answers with fixed texts.

Tests search these bytes for gold and for real ids: what a backend never receives it cannot cheat with.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto import memory_backend_pb2_grpc as pb_grpc


class CapturingBackend(pb_grpc.MemoryBackendServicer):
    """Serves the contract on a free port and records requests.

    ``received`` holds (RPC, serialised request) in the order of arrival; for Ingest, one entry for each frame.
    """

    def __init__(self, *, answers: bool = True, kind: pb.BackendKind.ValueType = pb.BACKEND_KIND_COMPETITOR) -> None:
        self.received: list[tuple[str, bytes]] = []
        self._answers = answers
        self._kind = kind
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(max_workers=4))
        pb_grpc.add_MemoryBackendServicer_to_server(self, self._server)
        state = health.HealthServicer()
        state.set("", health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(state, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(grace=0).wait()

    def of(self, rpc: str) -> list[bytes]:
        """Return the serialised requests of one RPC, in the order of arrival."""
        return [raw for name, raw in self.received if name == rpc]

    def _record(
        self, rpc: str, request: pb.IngestRequest | pb.SearchRequest | pb.AnswerRequest | pb.ResetRequest
    ) -> None:
        with self._lock:
            self.received.append((rpc, request.SerializeToString(deterministic=True)))

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        return pb.DescribeResponse(
            name="capture",
            version="1",
            contract_version="1.0",
            kind=self._kind,
            capabilities=[pb.CAPABILITY_ANSWER] if self._answers else [],
            digest_versions=[1],
        )

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        day = 0
        for frame in request_iterator:
            self._record("Ingest", frame)
            if frame.HasField("header"):
                day = frame.header.day_index
        return pb.IngestResponse(visible_through_day=day)

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        self._record("Search", request)
        return pb.SearchResponse(
            items=[pb.MemoryItem(text="Somebody said something.")], visible_through_day=request.as_of_day
        )

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        self._record("Answer", request)
        yield pb.AnswerEvent(retrieved=pb.Retrieved(visible_through_day=request.search.as_of_day))
        yield pb.AnswerEvent(text_delta=pb.TextDelta(text="I do not know."))
        yield pb.AnswerEvent(completed=pb.Completed(text="I do not know.", finish_reason=pb.FINISH_REASON_STOP))

    def Forget(self, request: pb.ForgetRequest, context: grpc.ServicerContext) -> pb.ForgetResponse:
        context.set_code(grpc.StatusCode.UNIMPLEMENTED)
        return pb.ForgetResponse()

    def Reset(self, request: pb.ResetRequest, context: grpc.ServicerContext) -> pb.ResetResponse:
        self._record("Reset", request)
        return pb.ResetResponse()
