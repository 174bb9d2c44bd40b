"""Defines broken backends with faults of the protocol: options, codes, limits, streams, tokens, health.

What they remember is right; a harness would still misread or wrongly blame them. The conformance suite must fail each
(``test_broken.py``); a row of defects.toml says in a sentence what a class does.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin

import grpc
from grpc_health.v1 import health, health_pb2
from memarena_answering import ReaderClient
from memarena_answering.servers.door import Door
from memarena_answering.servers.replies import Reply
from memarena_backend import Call
from memarena_backend.engine import Engine
from memarena_backend.errors import CallError, unavailable
from memarena_backend.parsing import QueryParser, put_item, put_items, wire_notices
from memarena_backend.records import Evidence
from memarena_backend.servicer import Servicer, _models
from memarena_proto import memory_backend_pb2 as pb

UNKNOWN_NUMBER: Any = 7
"""A number that is no value of the contract's enums, as a later version may send; typed Any, since no enum has it."""
QUERY_TEXT_BYTES = 64 * 1024
"""The contract's limit of a question's text, stated here on purpose and not imported from the kit."""

Frames = Iterator[pb.IngestRequest]


class AnyOption(Servicer):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        known = [option for option in request.options if option.key == "depth"]
        del request.options[:]
        request.options.extend(known)
        return super().search(request, context)


class NoBadRequest(Servicer):
    """INVALID_ARGUMENT keeps its message and loses its details."""

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        plain: dict[str, Any] = dict.fromkeys(("ingest", "search", "reset", "forget"), self._plain)
        for name, make in {**plain, "answer": self._plain_stream}.items():
            setattr(self, name, make(getattr(self, name)))
        return super().handlers()

    @staticmethod
    def _plain(method: Any) -> Any:
        def call(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                return method(request, context)
            except CallError as error:
                raise _without_field(error) from error

        return call

    @staticmethod
    def _plain_stream(method: Any) -> Any:
        def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                yield from method(request, context)
            except CallError as error:
                raise _without_field(error) from error

        return call


def _without_field(error: CallError) -> CallError:
    return CallError(error.code, str(error), retry_after_s=error.retry_after_s)


class AcceptsAboveTheLimit(Servicer):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        request.text = request.text.encode()[:QUERY_TEXT_BYTES].decode(errors="ignore")
        return super().search(request, context)


class ResponseTooLarge(Servicer):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        _, returned = self._find(request, Call(context, _models(request, "model_access", context)))
        response = pb.SearchResponse(
            visible_through_day=returned.visible_through_day, notices=wire_notices(returned.result.notices)
        )
        for item in returned.result.items:
            put_item(response, item)
        return response


class ServingTooEarly(Servicer):
    refusals = 2

    def ingest(self, frames: Frames, context: grpc.ServicerContext) -> pb.IngestResponse:
        if self.refusals:
            self.refusals -= 1
            raise unavailable("warming up")
        return super().ingest(frames, context)


class DescribeChanges(Servicer):
    calls = 0

    def describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        self.calls += 1
        described = pb.DescribeResponse()
        described.CopyFrom(super().describe(request, context))
        described.version = f"{described.version}.{self.calls}"
        return described


class KindOfItsOwn(Servicer):
    def describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        described = pb.DescribeResponse()
        described.CopyFrom(super().describe(request, context))
        described.kind = UNKNOWN_NUMBER
        return described


class FinishOfItsOwn(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        for event in super().answer(request, context):
            if event.HasField("completed"):
                event.completed.finish_reason = UNKNOWN_NUMBER
            yield event


class UsesTokenAfterReturn(Servicer):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        if request.model_access.base_url and request.model_access.token:
            threading.Timer(0.02, _list_models, (request.model_access.base_url, request.model_access.token)).start()
        return super().search(request, context)


def _list_models(base_url: str, token: str) -> None:
    request = urllib.request.Request(f"{base_url}/models", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30):
            pass
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        return  # the suite is over


class RetrievedLate(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        yield from list(super().answer(request, context))


class CompletedFirst(Servicer):
    """Sends the third piece of the text after Completed."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        pieces, late_event = 0, None
        for event in super().answer(request, context):
            if event.HasField("text_delta"):
                pieces += 1
                if pieces == 3:
                    late_event = event
                    continue
            yield event
        if late_event is not None:
            yield late_event


class StripsAnswers(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        for event in super().answer(request, context):
            if event.HasField("completed"):
                event.completed.text = event.completed.text.strip()
            yield event


class OverfillsWindow(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        for model in request.search.model_access.models:
            model.context_window_tokens = 0
        return super().answer(request, context)


class AnswerIgnoresTheDay(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        last = self._engine._store.last_day(request.search.namespace)
        if last is not None:
            request.search.as_of_day = last
        return super().answer(request, context)


class AnswerIgnoresBounds(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        request.search.max_items = request.search.max_context_tokens = 0
        return super().answer(request, context)


class PromptIgnoresBounds(Servicer):
    """Retrieved keeps the bounds of the request; the prompt is made without them."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        bounded = pb.SearchRequest()
        bounded.CopyFrom(request.search)
        request.search.max_items = request.search.max_context_tokens = 0
        for event in super().answer(request, context):
            if event.HasField("retrieved"):
                _, returned = self._find(bounded, Call(context, _models(bounded, "model_access", context)))
                event.retrieved.CopyFrom(pb.Retrieved(visible_through_day=returned.visible_through_day))
                put_items(event.retrieved, returned.result.items)
            yield event


class _TakesEvidence(QueryParser):
    def _evidence(self, request: pb.SearchRequest) -> Evidence | None:
        evidence = request.privileged_evidence
        return Evidence(tuple(evidence.session_ids)) if request.HasField("privileged_evidence") else None


class LetsEvidenceIn(Servicer):
    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._parser = _TakesEvidence(engine.description)


class KnowsEveryService(health.HealthServicer):  # type: ignore[misc]  # grpc_health comes without types
    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


class _Wandering(Door):
    """A connection that follows a redirect, once."""

    @contextmanager
    def open(
        self, url: str, api_key: str | None, body: object = None, **how: Any
    ) -> Iterator[tuple[Reply, Iterable[bytes]]]:
        with super().open(url, api_key, body, **how) as (head, parts):
            target = head.headers.get("location")
            if target is None:
                yield head, parts
                return
        with super().open(urljoin(url, target), api_key, body, **how) as opened:
            yield opened


class _Following(ReaderClient):
    def warm_up(self) -> Door:
        self._door = self._door or _Wandering()
        return self._door


class FollowsRedirects(Servicer):
    """Calls the reader with a client that follows redirects, which carries the token to another server."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        assert self._answerer is not None
        clients, url = self._answerer._clients, request.search.model_access.base_url
        if not isinstance(clients.get(url), _Following):
            if (plain := clients.pop(url, None)) is not None:
                plain.close()
            clients[url] = _Following(url)
        yield from super().answer(request, context)
