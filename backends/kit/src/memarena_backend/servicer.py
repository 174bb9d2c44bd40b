"""Serves the RPCs of the contract: parses a request, calls the engine, and builds the response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
from memarena_proto import memory_backend_pb2 as pb

from memarena_backend.answering import Answerer, parse_reading
from memarena_backend.calls import Call
from memarena_backend.checks import check_id
from memarena_backend.engine import Engine, SearchOutcome
from memarena_backend.errors import CallError, invalid_argument
from memarena_backend.forgetting import parse_target
from memarena_backend.gateway_host import check_gateway_host
from memarena_backend.limits import RESPONSE_BYTES
from memarena_backend.parsing import QueryParser, parse_model_access, put_items, wire_description, wire_notices
from memarena_backend.records import Capability, ModelAccess, Notice, Query
from memarena_backend.transport import client_stream, server_stream, unary


class Servicer:
    """Serves one memory. Methods raise CallError; the transport turns these into gRPC statuses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._description = wire_description(engine.description)
        self._parser = QueryParser(engine.description)
        self._answerer = Answerer() if Capability.ANSWER in engine.description.capabilities else None

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Return the handlers by RPC name, for registering with a server."""
        return {
            "Describe": unary(pb.DescribeRequest, self.describe),
            "Ingest": client_stream(pb.IngestRequest, self.ingest),
            "Search": unary(pb.SearchRequest, self.search),
            "Answer": server_stream(pb.AnswerRequest, self.answer),
            "Reset": unary(pb.ResetRequest, self.reset),
            "Forget": unary(pb.ForgetRequest, self.forget),
        }

    def close(self) -> None:
        """Close the connections to gateways."""
        if self._answerer is not None:
            self._answerer.close()

    def describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        """Return the backend's description."""
        return self._description

    def ingest(self, frames: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        """Ingest one day atomically."""
        first = next(frames, None)
        if first is None or first.WhichOneof("frame") != "header":
            first_frame = "nothing" if first is None else first.WhichOneof("frame") or "an empty frame"
            raise invalid_argument("header", f"a day begins with its header, but {first_frame} came first")
        models = _models(first.header, "header.model_access", context)
        if models is not None and self._answerer is not None:
            self._answerer.warm_up(models)
        outcome = self._engine.ingest(first.header, frames, Call(context, models))
        return pb.IngestResponse(
            replayed=outcome.replayed,
            visible_through_day=outcome.visible_through_day,
            notices=wire_notices(outcome.notices),
        )

    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        """Search the memory for a question."""
        _, result = self._find(request, Call(context, _models(request, "model_access", context)))
        response = pb.SearchResponse(
            visible_through_day=result.visible_through_day, search_time_us=result.search_time_us
        )
        left_out = len(result.result.items) - put_items(response, result.result.items)
        response.truncated = result.result.truncated or left_out > 0
        notices = result.result.notices
        if left_out:
            notices = (*notices, Notice("items_left_out", f"a response holds at most {RESPONSE_BYTES} bytes", left_out))
        response.notices.extend(wire_notices(notices))
        return response

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        """Search, then ask the reader: yield Retrieved, the TextDeltas, Completed."""
        if self._answerer is None:
            raise CallError(grpc.StatusCode.UNIMPLEMENTED, "Answer is not declared; read over the items of Search")
        if not request.HasField("search"):
            raise invalid_argument("search", "is required")
        models = _models(request.search, "search.model_access", context)
        plan = parse_reading(request, models)
        assert models is not None  # parse_reading refuses a request without
        call = Call(context, models)
        try:
            query, result = self._find(request.search, call)
        except CallError as error:
            raise error.within("search") from error
        event = pb.AnswerEvent(retrieved=pb.Retrieved(visible_through_day=result.visible_through_day))
        sent_count = put_items(event.retrieved, result.result.items)
        event.retrieved.truncated = result.result.truncated or sent_count < len(result.result.items)
        yield event
        items = result.result.items[:sent_count]
        yield from self._answerer.answer(query, request.search.asked_at, items, plan, models, call)

    def reset(self, request: pb.ResetRequest, context: grpc.ServicerContext) -> pb.ResetResponse:
        """Delete a namespace."""
        self._engine.reset(check_id("namespace", request.namespace), Call(context))
        return pb.ResetResponse()

    def forget(self, request: pb.ForgetRequest, context: grpc.ServicerContext) -> pb.ForgetResponse:
        """Delete a session, a subject or a fact."""
        if Capability.FORGET not in self._engine.description.capabilities:
            raise CallError(grpc.StatusCode.UNIMPLEMENTED, "Forget is not declared")
        namespace = check_id("namespace", request.namespace)
        deleted = self._engine.forget(namespace, parse_target(request), Call(context))
        return pb.ForgetResponse(deleted_count=deleted)

    def _find(self, request: pb.SearchRequest, call: Call) -> tuple[Query, SearchOutcome]:
        namespace = check_id("namespace", request.namespace)
        query = self._parser.parse(request)
        return query, self._engine.search(namespace, query, call)


def _models(message: pb.DayHeader | pb.SearchRequest, field: str, context: grpc.ServicerContext) -> ModelAccess | None:
    if not message.HasField("model_access"):
        return None
    models = parse_model_access(message.model_access, field)
    check_gateway_host(models.base_url, context.peer(), f"{field}.base_url")
    return models
