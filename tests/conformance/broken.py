"""Backends with one planted defect each, by the names of defects.toml."""

from __future__ import annotations

import abc
import threading
import time
import unicodedata
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2
from memarena_backend import Call, Day, Item, Notice, Query, SearchResult, fit_ranked
from memarena_backend.assembly import DayAssembler
from memarena_backend.engine import Engine, Ingested
from memarena_backend.errors import CallError, above_limit, invalid_argument, unavailable
from memarena_backend.parsing import QueryParser, wire_items, wire_notices
from memarena_backend.records import Evidence
from memarena_backend.servicer import Servicer, _models
from memarena_backend.store import Committed, DayStore
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_BYTES, DayDigest

from tests.conformance.sound import Parts, SoundMemory

STUCK_S = 20.0
"""As good as for ever, and short enough that a server with a stuck call can be stopped."""
UNKNOWN_NUMBER = 7
"""Of no enum of the contract."""
QUERY_TEXT_BYTES, TURN_TEXT_BYTES = 64 * 1024, 256 * 1024

Frames = Iterator[pb.IngestRequest]


def memory_of(engine: Engine) -> SoundMemory:
    memory = engine.memory
    assert isinstance(memory, SoundMemory)
    return memory


# ------------------------------------------------------------------ what is found


class Leaks(SoundMemory):
    def searched(self, namespace: str, query: Query) -> list[Day]:
        return [day for days in list(self.days.values()) for day in days if day.index <= query.as_of_day]


class FoldsNames(SoundMemory):
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        return super().commit_day(namespace.lower(), day, call)

    def searched(self, namespace: str, query: Query) -> list[Day]:
        return super().searched(namespace.lower(), query)

    def forget(self, namespace: str) -> None:
        super().forget(namespace.lower())


class NormalisesText(SoundMemory):
    def found(self, namespace: str, query: Query) -> list[Item]:
        items = super().found(namespace, query)
        return [replace(item, text=unicodedata.normalize("NFC", item.text).strip()) for item in items]


class DropsEmoji(SoundMemory):
    def found(self, namespace: str, query: Query) -> list[Item]:
        items = super().found(namespace, query)
        return [replace(item, text="".join(c for c in item.text if ord(c) < 0x10000)) for item in items]


class NotReadyOnReturn(SoundMemory):
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        threading.Timer(0.04, super().commit_day, (namespace, day, call)).start()
        return ()


class EmptySearch(SoundMemory):
    def found(self, namespace: str, query: Query) -> list[Item]:
        return []


class TimeTravelSeesAll(SoundMemory):
    def searched(self, namespace: str, query: Query) -> list[Day]:
        return list(self.days.get(namespace, ()))


class MutableSearch(SoundMemory):
    searches = 0

    def found(self, namespace: str, query: Query) -> list[Item]:
        items = super().found(namespace, query)
        self.searches += 1
        cut = self.searches % len(items) if items else 0
        return items[cut:] + items[:cut]


class IgnoresMaxItems(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        return fit_ranked(self.found(namespace, query), None, query.max_context_tokens)


class IgnoresBudget(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        return fit_ranked(self.found(namespace, query), query.max_items, None)


class NoSources(SoundMemory):
    def found(self, namespace: str, query: Query) -> list[Item]:
        return [replace(item, session_ids=(), turn_ids=()) for item in super().found(namespace, query)]


class HangsOnStrangers(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        give_up_at = time.monotonic() + STUCK_S
        while query.requester.kind.value == "anonymous" and call.is_active() and time.monotonic() < give_up_at:
            time.sleep(0.02)
        return super().search(namespace, query, call)


class UsesEvidence(SoundMemory):
    def found(self, namespace: str, query: Query) -> list[Item]:
        items = super().found(namespace, replace(query, text=f"{query.text} canoe"))
        if query.evidence is None:
            return super().found(namespace, query)
        return [item for item in items if set(item.session_ids) & set(query.evidence.session_ids)]


class RefusesEmptyDays(SoundMemory):
    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        if not day.sessions and not day.events:
            raise invalid_argument("session", "a day without sessions makes no sense")
        return super().commit_day(namespace, day, call)


# ------------------------------------------------------------------ what is taken in


class EditedIngest(Engine, abc.ABC):
    """An engine that sees other frames than were sent."""

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        return super().ingest(header, self.edited(header, rest, call), call)

    @abc.abstractmethod
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames: ...


_CANCELLATION_ARRIVES_S = 0.2


class NeedsNoTrailer(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        digest, last = DayDigest(), None
        digest.add(pb.IngestRequest(header=header))
        for frame in rest:
            last = frame.WhichOneof("frame")
            yield frame
            digest.add(frame)
        if last != "trailer":
            time.sleep(_CANCELLATION_ARRIVES_S)
            call.check()  # gRPC may end the frames of a cancelled stream as if the sender had ended them
            yield pb.IngestRequest(trailer=digest.trailer())


class AnyDigest(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        digest = DayDigest()
        digest.add(pb.IngestRequest(header=header))
        for frame in rest:
            if frame.HasField("trailer") and len(frame.trailer.digest) == DIGEST_BYTES:
                frame.trailer.digest = digest.digest()
            yield frame
            digest.add(frame)


class AnyCounts(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        digest = DayDigest()
        digest.add(pb.IngestRequest(header=header))
        for frame in rest:
            if frame.HasField("trailer"):
                for name in ("session_count", "turn_count", "event_count"):
                    setattr(frame.trailer, name, getattr(digest, name))
            yield frame
            digest.add(frame)


class DigestOfNormalForm(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        as_sent, normal = DayDigest(), DayDigest()
        for digest in (as_sent, normal):
            digest.add(pb.IngestRequest(header=header))
        for frame in rest:
            if frame.HasField("trailer") and len(frame.trailer.digest) == DIGEST_BYTES:
                # What would be compared is the normal form: the comparison that follows is made to end likewise.
                matches = frame.trailer.digest == normal.digest()
                frame.trailer.digest = as_sent.digest() if matches else bytes(DIGEST_BYTES)
            yield frame
            as_sent.add(frame)
            normal.add(_in_normal_form(frame))


def _in_normal_form(frame: pb.IngestRequest) -> pb.IngestRequest:
    copy = pb.IngestRequest()
    copy.CopyFrom(frame)
    if copy.HasField("session"):
        copy.session.place = unicodedata.normalize("NFC", copy.session.place)
        for turn in copy.session.turns:
            turn.text = unicodedata.normalize("NFC", turn.text)
    return copy


class LastFrameOnly(EditedIngest):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._kept: dict[str, set[str]] = {}

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        for frame in rest:
            if frame.HasField("session"):
                self._kept[frame.session.session_id] = {turn.turn_id for turn in frame.session.turns}
            yield frame

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        done = super().ingest(header, rest, call)
        days = memory_of(self).days.get(header.namespace, [])
        if days:
            days[-1] = replace(
                days[-1],
                sessions=tuple(
                    replace(s, turns=tuple(t for t in s.turns if t.turn_id in self._kept[s.session_id]))
                    for s in days[-1].sessions
                ),
            )
        return done


class FailsAtTheLimit(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        for frame in rest:
            for turn in frame.session.turns:
                if len(turn.text.encode()) == TURN_TEXT_BYTES:
                    raise above_limit("session.turns.text", TURN_TEXT_BYTES, TURN_TEXT_BYTES)
            yield frame


class KeepsCancelledDays(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        seen = [pb.IngestRequest(header=header)]

        def noted() -> Frames:
            for frame in rest:
                seen.append(frame)
                yield frame

        try:
            return super().ingest(header, noted(), call)
        except grpc.RpcError:  # how gRPC tells one who reads a stream that it was broken off
            days = memory_of(self).days.get(header.namespace)
            if days:
                digest, assembler = DayDigest(), DayAssembler()
                for frame in seen:
                    digest.add(frame)
                    assembler.add(frame)
                assembler.add(pb.IngestRequest(trailer=digest.trailer()))
                days.append(replace(assembler.finish().day, index=days[-1].index))
            raise


class ForgetsOnReplay(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        done = super().ingest(header, rest, call)
        if done.replayed:
            days = memory_of(self).days[header.namespace]
            days[:] = [day for day in days if day.index != header.day_index]
        return done


class DoublesOnReplay(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        done = super().ingest(header, rest, call)
        if done.replayed:
            days = memory_of(self).days[header.namespace]
            days += [day for day in days if day.index == header.day_index][:1]
        return done


class ReplacesOnConflict(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        try:
            return super().ingest(header, rest, call)
        except CallError as error:
            if error.code is not grpc.StatusCode.ALREADY_EXISTS:
                raise
            return Ingested(True, memory_of(self).days[header.namespace][-1].index, ())


class KeepsFailedBatches(EditedIngest):
    """A batch that failed at one of its events can only be sent again with the same first session."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._failed: dict[tuple[str, str], bytes] = {}

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        key, first = (header.namespace, header.batch_id), b""
        for frame in rest:
            if frame.HasField("session") and not first:
                first = frame.SerializeToString()
            try:
                yield frame
            except GeneratorExit:
                if frame.HasField("event"):
                    self._failed.setdefault(key, first)
                raise
            if frame.HasField("trailer") and self._failed.get(key, first) != first:
                raise CallError(grpc.StatusCode.ALREADY_EXISTS, "the batch failed before, with another content")


class IgnoresDeadlines(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        def held() -> Frames:
            last = None
            try:
                for frame in rest:
                    last = frame.WhichOneof("frame")
                    yield frame
            finally:  # gRPC may end the frames of a cancelled stream with an error or without
                if last != "trailer":
                    time.sleep(STUCK_S / 10)

        return super().ingest(header, held(), _Stubborn(call))


class _Stubborn(Call):
    """A call that believes that somebody still waits for it."""

    def __init__(self, call: Call) -> None:
        super().__init__(None, call.models)


# ------------------------------------------------------------------ what is remembered


class ForgetsBatchIds(DayStore):
    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        return None


class DaysGoBack(DayStore):
    """Says that there is no last day to one who has just asked for a batch that is new."""

    _asked = threading.local()

    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        found = super().find_batch(namespace, batch_id)
        self._asked.new = found is None
        return found

    def last_day(self, namespace: str) -> int | None:
        new, self._asked.new = getattr(self._asked, "new", False), False
        return None if new else super().last_day(namespace)


class ResetKeeps(Engine):
    def reset(self, namespace: str, call: Call) -> None:
        """Nothing."""


class AnswersFromTheFuture(Engine):
    def _visible(self, namespace: str, as_of_day: int, call: Call) -> int:
        last = self._store.last_day(namespace)
        return super()._visible(namespace, as_of_day if last is None else min(as_of_day, last), call)


class WrongCode(Engine):
    def _visible(self, namespace: str, as_of_day: int, call: Call) -> int:
        try:
            return super()._visible(namespace, as_of_day, call)
        except CallError as error:
            if error.code is grpc.StatusCode.NOT_FOUND:
                raise CallError(grpc.StatusCode.UNKNOWN, error.description) from error
            raise


class Unchecked(Engine):
    """Lets results through that are above what was asked for."""

    def _check_result(self, result: SearchResult, query: Query) -> None:
        """Nothing."""


# ------------------------------------------------------------------ what crosses the wire


class AnyOption(Servicer):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        known = [option for option in request.options if option.key == "depth"]
        del request.options[:]
        request.options.extend(known)
        return super().search(request, context)


class NoBadRequest(Servicer):
    """INVALID_ARGUMENT keeps its message and loses its details."""

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        for name in ("ingest", "search", "reset"):
            setattr(self, name, self._plain(getattr(self, name)))
        self.answer = self._plain_stream(self.answer)  # type: ignore[method-assign]
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
        _, found = self._find(request, Call(context, _models(request, "model_access")))
        return pb.SearchResponse(
            items=wire_items(found.result.items),
            visible_through_day=found.visible_through_day,
            notices=wire_notices(found.result.notices),
        )


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
        described.kind = UNKNOWN_NUMBER  # type: ignore[assignment]
        return described


class FinishOfItsOwn(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        for event in super().answer(request, context):
            if event.HasField("completed"):
                event.completed.finish_reason = UNKNOWN_NUMBER  # type: ignore[assignment]
            yield event


class UsesTokenAfterReturn(Servicer):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        if request.model_access.base_url and request.model_access.token:
            threading.Timer(0.02, _list_models, (request.model_access.base_url, request.model_access.token)).start()
        return super().search(request, context)


def _list_models(base_url: str, token: str) -> None:
    request = urllib.request.Request(f"{base_url}/models", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5):
            pass
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        return  # the suite is over


class RetrievedLate(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        yield from list(super().answer(request, context))


class CompletedFirst(Servicer):
    """All pieces come when they are there, but for the last one, which comes after Completed."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        pieces, held = 0, None
        for event in super().answer(request, context):
            if event.HasField("text_delta"):
                pieces += 1
                if pieces == 3:
                    held = event
                    continue
            yield event
        if held is not None:
            yield held


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


class _TakesEvidence(QueryParser):
    def _evidence(self, request: pb.SearchRequest) -> Evidence | None:
        sent = request.privileged_evidence
        return Evidence(tuple(sent.session_ids)) if request.HasField("privileged_evidence") else None


class LetsEvidenceIn(Servicer):
    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._parser = _TakesEvidence(engine.description)


class KnowsEveryService(health.HealthServicer):  # type: ignore[misc]
    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


BROKEN: dict[str, Parts] = {
    "leaks": Parts(memory=Leaks),
    "folds-names": Parts(memory=FoldsNames),
    "forgets-on-replay": Parts(engine=ForgetsOnReplay),
    "forgets-batch-ids": Parts(store=ForgetsBatchIds),
    "doubles-on-replay": Parts(engine=DoublesOnReplay),
    "replaces-on-conflict": Parts(engine=ReplacesOnConflict),
    "keeps-cancelled-days": Parts(engine=KeepsCancelledDays),
    "needs-no-trailer": Parts(engine=NeedsNoTrailer),
    "any-digest": Parts(engine=AnyDigest),
    "any-counts": Parts(engine=AnyCounts),
    "digest-of-normal-form": Parts(engine=DigestOfNormalForm),
    "days-go-back": Parts(store=DaysGoBack),
    "keeps-failed-batches": Parts(engine=KeepsFailedBatches),
    "refuses-empty-days": Parts(memory=RefusesEmptyDays),
    "last-frame-only": Parts(engine=LastFrameOnly),
    "normalises-text": Parts(memory=NormalisesText),
    "drops-emoji": Parts(memory=DropsEmoji),
    "not-ready-on-return": Parts(memory=NotReadyOnReturn),
    "empty-search": Parts(memory=EmptySearch),
    "answers-from-the-future": Parts(engine=AnswersFromTheFuture),
    "time-travel-sees-all": Parts(memory=TimeTravelSeesAll),
    "mutable-search": Parts(memory=MutableSearch),
    "ignores-max-items": Parts(memory=IgnoresMaxItems, engine=Unchecked),
    "ignores-budget": Parts(memory=IgnoresBudget, engine=Unchecked),
    "no-sources": Parts(memory=NoSources),
    "any-option": Parts(servicer=AnyOption),
    "hangs-on-strangers": Parts(memory=HangsOnStrangers),
    "ignores-deadlines": Parts(engine=IgnoresDeadlines),
    "wrong-code": Parts(engine=WrongCode),
    "no-bad-request": Parts(servicer=NoBadRequest),
    "fails-at-the-limit": Parts(engine=FailsAtTheLimit),
    "accepts-above-the-limit": Parts(servicer=AcceptsAboveTheLimit),
    "response-too-large": Parts(servicer=ResponseTooLarge),
    "reset-keeps": Parts(engine=ResetKeeps),
    "never-serving": Parts(status=health_pb2.HealthCheckResponse.NOT_SERVING),
    "serving-too-early": Parts(servicer=ServingTooEarly),
    "knows-every-service": Parts(health=KnowsEveryService),
    "describe-changes": Parts(servicer=DescribeChanges),
    "kind-of-its-own": Parts(servicer=KindOfItsOwn),
    "health-of-its-own": Parts(status=UNKNOWN_NUMBER),
    "finish-of-its-own": Parts(servicer=FinishOfItsOwn),
    "uses-token-after-return": Parts(servicer=UsesTokenAfterReturn),
    "retrieved-late": Parts(servicer=RetrievedLate),
    "completed-first": Parts(servicer=CompletedFirst),
    "strips-answers": Parts(servicer=StripsAnswers),
    "overfills-window": Parts(servicer=OverfillsWindow),
    "uses-evidence": Parts(memory=UsesEvidence, servicer=LetsEvidenceIn),
}
