"""Defines broken backends with a sound Search and a faulty Answer: in its items, its stream, or its reader calls.

They show that checks of Search do not vouch for Answer, which searches, prompts and streams on its own: the ``ans``
checks must fail each (``test_broken.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import grpc
from memarena_backend import Call, Query
from memarena_backend.engine import Engine, SearchOutcome
from memarena_backend.errors import CallError
from memarena_backend.servicer import Servicer
from memarena_proto import memory_backend_pb2 as pb

Events = Iterator[pb.AnswerEvent]


class AnswerShowsNothing(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if event.HasField("retrieved"):
                del event.retrieved.items[:]
            yield event


class _SearchesOtherwise(Servicer):
    """Searches differently (``_looked_up``) if the search belongs to an Answer."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._asked = threading.local()

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        self._asked.by_answer = True
        try:
            yield from super().answer(request, context)
        finally:
            self._asked.by_answer = False

    def _find(self, request: pb.SearchRequest, call: Call) -> tuple[Query, SearchOutcome]:
        if getattr(self._asked, "by_answer", False):
            return self._looked_up(request, call)
        return super()._find(request, call)

    def _looked_up(self, request: pb.SearchRequest, call: Call) -> tuple[Query, SearchOutcome]:
        raise NotImplementedError


class AnswerOfAllNamespaces(_SearchesOtherwise):
    def _looked_up(self, request: pb.SearchRequest, call: Call) -> tuple[Query, SearchOutcome]:
        query, returned = Servicer._find(self, request, call)
        memory = self._engine.memory
        others = [ns for ns in memory.days if ns != request.namespace]  # type: ignore[attr-defined]
        more = [item for ns in others for item in memory.matches(ns, query)]  # type: ignore[attr-defined]
        return query, replace(returned, result=replace(returned.result, items=[*returned.result.items, *more]))


class AnswerRemembersItsSearch(_SearchesOtherwise):
    """Caches items by namespace, question and bounds, and so shows those of an earlier day."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._before: dict[tuple[str, str, int, int], tuple[Query, SearchOutcome]] = {}

    def _looked_up(self, request: pb.SearchRequest, call: Call) -> tuple[Query, SearchOutcome]:
        key = (request.namespace, request.text, request.max_items, request.max_context_tokens)
        query, returned = Servicer._find(self, request, call)
        first = self._before.setdefault(key, (query, returned))[1]
        return query, replace(returned, result=first.result)


class AnswerReadsNothing(Servicer):
    """The prompt is made without what Retrieved shows."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        assert self._answerer is not None
        whole = self._answerer.answer
        self._answerer.answer = (  # type: ignore[method-assign]
            lambda query, asked_at, items, plan, models, call: whole(query, asked_at, [], plan, models, call)
        )


class AnswerDropsAPiece(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        pieces = 0
        for event in super().answer(request, context):
            pieces += event.HasField("text_delta")
            if not (event.HasField("text_delta") and pieces == 2):
                yield event


class AnswerSendsEmptyPieces(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            yield event
            if event.HasField("text_delta"):
                yield pb.AnswerEvent(text_delta=pb.TextDelta())


class AnswerRetrievesTwice(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if event.HasField("retrieved"):
                yield event
            yield event


class AnswerInventsUsage(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if event.HasField("completed"):
                event.completed.usage.completion_tokens = len(event.completed.text) // 4
            yield event


class AnswerIgnoresMaxTokens(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        if request.reading.max_tokens:
            request.reading.max_tokens = 256
        return super().answer(request, context)


class AnswerIgnoresTheSeed(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        request.reading.seed = 1
        return super().answer(request, context)


class AnswerAlwaysHasASystemRole(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for model in request.search.model_access.models:
            model.no_system_role = False
        return super().answer(request, context)


class AnswerHidesFailures(Servicer):
    """Invents an answer where the reader failed."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        begun = False
        try:
            for event in super().answer(request, context):
                begun = True
                yield event
        except CallError:
            if not begun:
                raise
            yield pb.AnswerEvent(completed=pb.Completed(text="I do not know.", finish_reason=pb.FINISH_REASON_STOP))


class AnswerSaysTheLastDay(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            last = self._engine._store.last_day(request.search.namespace)
            if event.HasField("retrieved") and last is not None:
                event.retrieved.visible_through_day = last
            yield event


class AnswerRemembersTheQuestion(Servicer):
    """Adds the last day to the index again with every answer."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        yield from super().answer(request, context)
        days = self._engine.memory.days[request.search.namespace]  # type: ignore[attr-defined]
        days.append(days[-1])
