"""Defines broken backends whose fault needs two conditions together, or an unusual value (test_lives.py).

They continue ``broken_lives.py``: a check for one condition at a time passes them, such as a window together with a
model that counts no tokens, an offset of half an hour, or an id with a colon. ``BREACHES`` names the check that must
fail for each.
"""

from __future__ import annotations

import json
import math
import re
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import normalize
from urllib.parse import urlsplit

import grpc
from grpc_health.v1 import health, health_pb2
from memarena_backend import Call, Day, Description, Item, Memory, Notice, OptionSpec, Query, SearchResult, fit_ranked
from memarena_backend.day_decoder import DayAssembler, ReceivedDay
from memarena_backend.engine import Engine, Ingested, SearchOutcome
from memarena_backend.errors import CallError, invalid_argument
from memarena_backend.fitting import tokens_by_bytes
from memarena_backend.forgetting import Target
from memarena_backend.limits import RESPONSE_BYTES
from memarena_backend.parsing import put_items
from memarena_backend.records import Requester, Session, Turn
from memarena_backend.servicer import Servicer
from memarena_backend.store import Committed, DayStore
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DayDigest

from tests.conformance.broken_calls import SanitisesNames
from tests.conformance.broken_days import _CANCELLATION_ARRIVES_S, DigestOfAnOrder, EditedIngest, Unchecked, memory_of
from tests.conformance.broken_lives import (
    Breach,
    Events,
    Forgets,
    Frames,
    Labels,
    Prompts,
    ReadsByHand,
    Takes,
    edited,
    with_turns,
)
from tests.conformance.broken_memories import CatchesUp
from tests.conformance.broken_retrieval import RankedMemory, words_of
from tests.conformance.sound import Parts, SoundMemory

# ------------------------------------------------------------------ answers


class HoldsBlanksBack(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if not event.HasField("text_delta") or event.text_delta.text.strip():
                yield event


class Edited(Servicer):
    """Answers another request than was sent."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for model in request.search.model_access.models:
            self.edit(request, model)
        return super().answer(request, context)

    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        """Edit the request, or one of its models."""


class CountsAlways(Edited):
    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        model.counts_tokens = True


class NoWindowWithoutCounts(Edited):
    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        model.context_window_tokens *= model.counts_tokens


class SystemRoleInJson(Edited):
    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        model.no_system_role &= request.reading.prompt_style != pb.PROMPT_STYLE_JSON_CONTEXT


class AnyThinkingIsOn(Edited):
    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        if request.reading.thinking not in pb.Thinking.values():
            request.reading.thinking = pb.THINKING_ON


class GatewayAtTheRoot(Edited):
    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        request.search.model_access.base_url = f"http://{urlsplit(request.search.model_access.base_url).netloc}/v1"


class FirstModel(Edited):
    """Treats an extractor as a reader, and asks the last model of the list instead of the one that is named."""

    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        if model.role == pb.MODEL_ROLE_EXTRACTOR and request.reading.model:
            model.role, request.reading.model = pb.MODEL_ROLE_READER, model.name


class TemperatureOf32Bits(Edited):
    def edit(self, request: pb.AnswerRequest, model: pb.Model) -> None:
        request.reading.temperature = struct.unpack("f", struct.pack("f", request.reading.temperature))[0]


class FailedAnswersLock(Servicer):
    """An Answer whose reader failed never releases its lock, so that later days are refused."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._locked, whole = set[str](), engine.ingest

        def ingest(header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
            if header.namespace in self._locked:
                raise CallError(grpc.StatusCode.ABORTED, "another call on the namespace is pending")
            return whole(header, rest, call)

        vars(engine)["ingest"] = ingest

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        try:
            yield from super().answer(request, context)
        except CallError as error:
            if error.code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE):
                self._locked.add(request.search.namespace)
            raise


class CountsByTheFirst(Servicer):
    """Counts tokens with the first model of the list, whichever it is."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        access = request.search.model_access
        body = {"model": access.models[0].name if access.models else "", "texts": [request.search.text]}
        with suppress(urllib.error.HTTPError, ValueError):
            http_request = urllib.request.Request(
                f"{access.base_url}/tokenize",
                data=json.dumps(body).encode(),
                headers={"Authorization": f"Bearer {access.token}"},
            )
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(http_request, timeout=10).close()
        return super().answer(request, context)


class DoublesByARetry(Servicer):
    """Asks a reader again whose stream broke, and appends the second reply to the first."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        texts: list[str] = []
        try:
            for event in super().answer(request, context):
                texts.append(event.text_delta.text)
                yield event
        except CallError:
            if not any(texts):
                raise
            for event in super().answer(request, context):
                if event.HasField("completed"):
                    event.completed.text = "".join(texts) + event.completed.text
                if not event.HasField("retrieved"):
                    yield event


class RemembersEvidence(Servicer):
    """Refuses a search with evidence, but remembers it, and ranks those sessions first in the next search."""

    named = frozenset[str]()

    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        if request.HasField("privileged_evidence"):
            self.named = frozenset(request.privileged_evidence.session_ids)
        response = super().search(request, context)
        items = sorted(response.items, key=lambda item: not self.named & set(item.source_session_ids))
        del response.items[:]
        response.items.extend(items)
        return response


class TokenizerFailsInside(Servicer):
    """Reports INTERNAL, its own fault, where the tokenizer of the model server failed."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        try:
            yield from super().answer(request, context)
        except CallError as error:
            code = grpc.StatusCode.INTERNAL if error.code is grpc.StatusCode.UNAVAILABLE else error.code
            raise CallError(code, str(error)) from error


class CountsByLength(ReadsByHand):
    """Caches token counts by the length of a text in UTF-16, so that texts of one length share a count."""

    def _find(self, request: pb.SearchRequest, call: Call) -> tuple[Query, SearchOutcome]:
        query, returned = super()._find(request, call)
        room, known, fitting = request.model_access.models[1].context_window_tokens - 400, dict[int, int](), []
        for item in returned.result.items:
            tokens = known.setdefault(len(item.text.encode("utf-16-le")), tokens_by_bytes(item.text))
            if tokens <= room:
                room -= tokens
                fitting.append(item)
        return query, replace(returned, result=replace(returned.result, items=fitting))


class NamedByTheLife(Prompts):
    """Shows the asker under the name that a session has for the id, not under the name of the request."""

    def asked(self, query: Query) -> Query:
        memory = memory_of(self._engine)
        sessions = [s for days in memory.days.values() for day in days for s in day.sessions]
        names = {p.participant_id: p.display_name for s in sessions for p in s.participants}
        asks = query.requester
        name = names.get(asks.participant_id, asks.display_name)
        return replace(query, requester=Requester(asks.kind, asks.participant_id, name, asks.relationship))


# ------------------------------------------------------------------ days


class NamesInNormalForm(DigestOfAnOrder):
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]:
        for frame in frames:
            for person in (*frame.session.participants, *([frame.header.owner] if frame.HasField("header") else [])):
                person.display_name = normalize("NFC", person.display_name)
        return frames


class EventsInNormalForm(DigestOfAnOrder):
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]:
        for frame in frames:
            if frame.HasField("event"):
                frame.event.text = normalize("NFC", frame.event.text)
        return frames


class BlanksAreAbsent(DigestOfAnOrder):
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]:
        for frame in frames:
            if frame.HasField("session") and not frame.session.place.strip():
                frame.session.place = ""
        return frames


class CountsFrames(EditedIngest):
    """Expects a session_count in which every frame of a session counts."""

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        digest, sessions = DayDigest(), 0
        digest.add(pb.IngestRequest(header=header))
        for frame in rest:
            if frame.HasField("trailer"):
                right = frame.trailer.session_count == sessions
                frame.trailer.session_count = digest.session_count if right else digest.session_count + 9
            else:
                digest.add(frame)
                sessions += frame.HasField("session")
            yield frame


class HalfHoursPositive(EditedIngest):
    """Reads -03:30 as three hours back and half an hour on."""

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        def read(time: str) -> datetime:
            return datetime.fromisoformat(re.sub(r"-(\d\d):30$", lambda at: f"-{int(at[1]) - 1:02}:30", time))

        for frame in rest:
            session = frame.session
            if session.ended_at and read(session.ended_at.upper()) < read(session.started_at.upper()):
                raise invalid_argument("session.ended_at", "is before started_at")
            yield frame


class BatchesOutliveReset(EditedIngest):
    """After a Reset a batch id is new only with the content that it had before."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._known: dict[tuple[str, str], bytes] = {}

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        for frame in rest:
            if frame.HasField("trailer"):
                key = (header.namespace, header.batch_id)
                if self._known.setdefault(key, frame.trailer.digest) != frame.trailer.digest:
                    raise CallError(grpc.StatusCode.ALREADY_EXISTS, "known, with another digest")
            yield frame


class BusyIsAFault(Engine):
    """While a day is pending, and a moment longer where it failed, other calls on its namespace end with INTERNAL."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._busy: set[str] = set()

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        self._idle(header.namespace)
        self._busy.add(header.namespace)
        try:
            ingested = super().ingest(header, rest, call)
        except Exception:
            time.sleep(3 * _CANCELLATION_ARRIVES_S)
            self._busy.discard(header.namespace)
            raise
        self._busy.discard(header.namespace)
        return ingested

    def search(self, namespace: str, query: Query, call: Call) -> SearchOutcome:
        self._idle(namespace)
        return super().search(namespace, query, call)

    def _idle(self, namespace: str) -> None:
        if namespace in self._busy:
            raise CallError(grpc.StatusCode.INTERNAL, "busy")


class LocksWithoutCase(Engine):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._locks: dict[str, threading.Lock] = {}

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        if not (lock := self._locks.setdefault(header.namespace.lower(), threading.Lock())).acquire(blocking=False):
            raise CallError(grpc.StatusCode.ABORTED, "another call on the namespace is pending")
        try:
            return super().ingest(header, rest, call)
        finally:
            lock.release()


class LocksForGood(Engine):
    """A call that fails leaves its lock."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._locked: set[str] = set()

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        if header.namespace in self._locked:
            raise CallError(grpc.StatusCode.ABORTED, "another call on the namespace is pending")
        self._locked.add(header.namespace)
        ingested = super().ingest(header, rest, call)
        self._locked.discard(header.namespace)
        return ingested


class FewStreams(Engine):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._streams = threading.Semaphore(12)

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        if not self._streams.acquire(blocking=False):
            raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams")
        try:
            return super().ingest(header, rest, call)
        finally:
            self._streams.release()


class CommitsAtTheTrailer(Engine):
    """A stream that is cancelled after its trailer leaves the day without its batch id."""

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        def whole() -> Frames:
            for frame in rest:
                yield frame
                if frame.HasField("trailer"):
                    return

        ingested = super().ingest(header, whole(), call)
        try:
            assert not list(rest)
            time.sleep(_CANCELLATION_ARRIVES_S)
            call.check()
        except Exception:
            with self._store._guarded() as db:
                db.execute("UPDATE days SET batch_id = batch_id || '-' WHERE batch_id = ?", (header.batch_id,))
            raise
        return ingested


class CutOffDaysReturn(Engine):
    """A day whose stream is cancelled after its trailer is on the disk without its batch id, which a restart shows."""

    _cut_off: ClassVar[dict[Path, ReceivedDay]] = {}

    def __init__(self, memory: Memory, store: DayStore) -> None:
        super().__init__(memory, store)
        if (received := self._cut_off.pop(store._path, None)) is not None:
            store.commit(replace(received, batch_id=f"{received.batch_id}-"))

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        assembler, last = DayAssembler(), ""

        def noted() -> Frames:
            nonlocal last
            assembler.add(pb.IngestRequest(header=header))
            for frame in rest:
                last = frame.WhichOneof("frame") or ""
                assembler.add(frame)
                yield frame

        try:
            return super().ingest(header, noted(), call)
        except CallError:
            raise
        except Exception:
            if last == "trailer":
                self._cut_off[self._store._path] = assembler.finish()
            raise


class BatchIdsAsNumbers(DayStore):
    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        query = "SELECT day_index, digest FROM days WHERE namespace = ? AND ltrim(batch_id, '0') = ?"
        with self._guarded() as db:
            row = db.execute(query, (namespace, batch_id.lstrip("0"))).fetchone()
        return None if row is None else Committed(int(row[0]), bytes(row[1]))


class ResetsByPattern(DayStore):
    def remove(self, namespace: str) -> None:
        pattern = "".join("?" if sign == "_" else f"[{sign}]" if sign in "*?[" else sign for sign in namespace)
        with self._guarded() as db:
            db.execute("DELETE FROM days WHERE namespace GLOB ?", (pattern,))


class SlashesReplaced(SanitisesNames):
    def _table(self, namespace: str) -> str:
        return namespace.replace("/", "_")


# ------------------------------------------------------------------ what is kept and returned


class IdsBehindAColon(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        return replace(item, turn_ids=(turn.turn_id.rpartition(":")[2],))


class SecondsAlone(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        return replace(item, time=turn.said_at.replace(microsecond=0).isoformat())


class FirstThousandWords(SoundMemory):
    """Searches a text up to its thousandth word."""

    def matches(self, namespace: str, query: Query) -> list[Item]:
        query_words, returned = words_of(query.text), super().matches(namespace, query)
        return [item for item in returned if query_words & words_of(" ".join(item.text.split()[:1_000]))]


class ReportsWhatItCuts(FirstThousandWords):
    """Indexes the first thousand words of a text, and reports the cut in a notice of the day, which is allowed."""

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        texts = [turn.text for session in day.sessions for turn in session.turns]
        cut = sum(len(text.split()) > 1_000 for text in texts)
        return [*super().commit_day(namespace, day, call), *([Notice("index_cut", count=cut)] if cut else ())]


class NumbersByTheirBeginning(SoundMemory):
    def describe(self) -> Description:
        return replace(super().describe(), options=(OptionSpec("depth", "A number.", "1"),))


class FillsUp(Servicer):
    """Leaves out an item that does not fit into a response and goes on, so it returns no beginning of the ranking."""

    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        _, outcome = self._find(request, Call(context, None))
        response = pb.SearchResponse(visible_through_day=outcome.visible_through_day)
        for item in outcome.result.items:
            put_items(part := pb.SearchResponse(), [item])
            if response.ByteSize() + part.ByteSize() < RESPONSE_BYTES:
                response.items.extend(part.items)
        return response


class LongTextsCutByRestart(SoundMemory):
    """Stores the length of a text in 16 bits, so that a restart cuts a text of more than 64 KiB."""

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(namespace, [edited(day, lambda text: text[: len(text) & 0xFFFF]) for day in days], call)


class EventsLostByRestart(SoundMemory):
    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(namespace, [replace(day, events=()) for day in days], call)


class LongDaysLater(CatchesUp):
    """Indexes a day of many turns after the next question."""

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        if sum(len(session.turns) for session in day.sessions) <= 100:
            return super().commit_day(namespace, day, call)
        self.left.append(partial(self.complete, namespace, day))
        return super().commit_day(namespace, replace(day, sessions=(), events=()), call)


class CutsCharacters(Servicer):
    """Under a bound of tokens the last character is cut in two, as languages do whose texts are bytes.

    A Python string cannot hold half a character, so a mark (U+E001) is set and its bytes are damaged when serialised.
    """

    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        response = super().search(request, context)
        if request.max_context_tokens and response.items:
            response.items[-1].text += "\ue001"
        return response

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        def cut(response: pb.SearchResponse) -> bytes:
            return response.SerializeToString().replace("\ue001".encode(), b"\xee\x80.")

        whole = super().handlers()
        search = whole["Search"]
        method: Any = search.unary_unary
        return {**whole, "Search": grpc.unary_unary_rpc_method_handler(method, search.request_deserializer, cut)}


class ServesTooEarly(Servicer):
    """After a restart it is SERVING for half a second in which it still refuses days."""

    _started: ClassVar[set[Path]] = set()

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        again = engine._store._path in self._started
        self._started.add(engine._store._path)
        self._ready_at = time.monotonic() + 0.5 * again

    def ingest(self, frames: Frames, context: grpc.ServicerContext) -> pb.IngestResponse:
        if time.monotonic() < self._ready_at:
            raise CallError(grpc.StatusCode.UNAVAILABLE, "starting")
        return super().ingest(frames, context)


class SetsOfTurns(Takes):
    def edit(self, day: Day) -> Day:
        return with_turns(day, lambda s: tuple({turn.text: turn for turn in reversed(s.turns)}.values())[::-1])


class EndsWithoutText(Takes):
    """A turn without text ends a session."""

    def edit(self, day: Day) -> Day:
        return with_turns(day, lambda s: s.turns if all(turn.text for turn in s.turns) else ())


class IdsOfTextsAlone(Labels):
    """Numbers turns among those that have a text."""

    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        number = [each for each in session.turns if each.text].index(turn)
        return replace(item, turn_ids=(session.turns[number].turn_id,))


class LineFeedsInEvents(Takes):
    def edit(self, day: Day) -> Day:
        return replace(day, events=tuple(replace(e, text=e.text.replace("\r", "\n")) for e in day.events))


class KeepsTheLatest(RankedMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        ranked = self.matches(namespace, query)
        latest = {item.time for item in sorted(ranked, key=lambda item: item.time)[-(query.max_items or 0) :]}
        return fit_ranked([item for item in ranked if item.time in latest], query.max_items, query.max_context_tokens)


class InfiniteForItsOwnText(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        returned = super().matches(namespace, query)
        return [replace(item, score=math.inf) if item.text == query.text else item for item in returned]


class OneBoundAtATime(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        most = None if query.max_context_tokens else query.max_items
        return super().search(namespace, replace(query, max_items=most), call)


class AllButOne(SoundMemory):
    """Returns twenty items if there is no bound, and 19 if the bound equals the number of matches."""

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        match_count = len(self.matches(namespace, query))
        most = 20 if not query.max_items else 19 if query.max_items == match_count > 20 else query.max_items
        return super().search(namespace, replace(query, max_items=most), call)


class CountsSearches(SoundMemory):
    """Raises the scores with every search, so that no search can be repeated."""

    searches = 0

    def matches(self, namespace: str, query: Query) -> list[Item]:
        self.searches += 1
        return [replace(item, score=item.score + self.searches / 100) for item in super().matches(namespace, query)]


# ------------------------------------------------------------------ Forget, health


class ForgetsByWords(Forgets):
    def meant(self, name: str, text: str) -> bool:
        return all(word in text for word in name.split())


class _AllButTheLastFrame(Target):
    def frames_without(self, frames: Any) -> tuple[list[pb.IngestRequest], int]:
        *frames, last = frames
        remaining, removed_count = super().frames_without(frames)
        return [*remaining, last], removed_count


class LastEventStays(Engine):
    def forget(self, namespace: str, target: Target, call: Call) -> int:
        return super().forget(namespace, _AllButTheLastFrame(target.session_id, target.says), call)


class EmptiedDaysGo(Engine):
    """Drops a day of which a Forget leaves nothing, as if it had never been committed."""

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        removed_count = super().forget(namespace, target, call)
        days = [*self._store.days(namespace)]
        if removed_count and not days[-1].sessions and not days[-1].events:
            with self._store._guarded() as db:
                db.execute("DELETE FROM days WHERE namespace = ? AND day_index = ?", (namespace, days[-1].index))
        return removed_count


class KnowsThePackage(health.HealthServicer):  # type: ignore[misc]  # grpc_health comes without types
    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        known = not request.service or request.service.startswith("memarena.v1")
        return super().Check(health_pb2.HealthCheckRequest(service="" if known else request.service), context)


BREACHES: dict[str, Breach] = {
    "blanks held back": Breach(Parts(servicer=HoldsBlanksBack), "ans.unaltered", "the text_deltas say"),
    "tokens counted always": Breach(Parts(servicer=CountsAlways), "ans.window", "counts_tokens False"),
    "a window without counts": Breach(Parts(servicer=NoWindowWithoutCounts), "ans.window", "counts_tokens False"),
    "tokens of the first model": Breach(Parts(servicer=CountsByTheFirst), "mod.offered-models", "a call to /tokenize"),
    "a reply doubled": Breach(Parts(servicer=DoublesByARetry), "ans.model-errors", "was asked again, and Answer ended"),
    "evidence remembered": Breach(Parts(servicer=RemembersEvidence), "evd.competitor", "evidence of an earlier call"),
    "a tokenizer that fails": Breach(Parts(servicer=TokenizerFailsInside), "ans.window", "/tokenize answering 502"),
    "tokens by length": Breach(Parts(servicer=CountsByLength), "ans.window", "the prompt has"),
    "a system role in JSON": Breach(
        Parts(servicer=SystemRoleInJson), "ans.no-system-role", "PROMPT_STYLE_JSON_CONTEXT"
    ),
    "a temperature of 32 bits": Breach(Parts(servicer=TemperatureOf32Bits), "ans.sampling", "temperature 0.699999"),
    "a failed Answer locks": Breach(Parts(servicer=FailedAnswersLock), "ans.model-errors", "had ended: Answer with"),
    "a value of thinking": Breach(Parts(servicer=AnyThinkingIsOn), "ver.unknown-enums", "the same as none"),
    "a gateway below a path": Breach(Parts(servicer=GatewayAtTheRoot), "ans.events", "are below base_url"),
    "another name than in the life": Breach(Parts(servicer=NamedByTheLife), "life.prompts", "without the name"),
    "names normalised": Breach(Parts(engine=NamesInNormalForm), "dig.gate", "display_name is not normalised"),
    "events normalised": Breach(Parts(engine=EventsInNormalForm), "dig.every-field", "an altered event.text"),
    "blanks are absent": Breach(Parts(engine=BlanksAreAbsent), "dig.gate", "session.place is a blank"),
    "frames counted": Breach(Parts(engine=CountsFrames), "dig.gate", "it counts 2 for session_count, and 1 came"),
    "half hours forward": Breach(Parts(engine=HalfHoursPositive), "ing.offsets", "05:45:00-03:30, which is later"),
    "batch ids after Reset": Breach(Parts(engine=BatchesOutliveReset), "rst.forgets", "is refused as known"),
    "busy is a fault": Breach(Parts(engine=BusyIsAFault), "ing.cancelled", "ABORTED is expected: ERR-6"),
    "locks without case": Breach(Parts(engine=LocksWithoutCase), "gen.independent", "another call on the namespace"),
    "few streams": Breach(Parts(engine=FewStreams), "gen.many", "got Ingest: RESOURCE_EXHAUSTED"),
    "half known": Breach(Parts(engine=CommitsAtTheTrailer), "ing.cancelled", "Ingest, which was cancelled"),
    "days cut off return": Breach(Parts(engine=CutOffDaysReturn), "hlt.restart", "Ingest, which was cancelled"),
    "batch ids as numbers": Breach(Parts(store=BatchIdsAsNumbers), "life.ingested", "is refused as known"),
    "Reset by a pattern": Breach(Parts(store=ResetsByPattern), "life.again", "after SIGKILL"),
    "slashes replaced": Breach(Parts(memory=SlashesReplaced), "idn.read-names", "where a sign is replaced"),
    "ids behind a colon": Breach(Parts(memory=IdsBehindAColon), "life.sources", "which was never ingested"),
    "whole seconds": Breach(Parts(memory=SecondsAlone), "life.sources", "its source lies between"),
    "a thousand words": Breach(Parts(memory=FirstThousandWords), "life.ingested", "the end of a text of 1,500 words"),
    "beginnings of numbers": Breach(Parts(memory=NumbersByTheirBeginning), "src.options", "depth '1x', whose default"),
    "a response filled up": Breach(
        Parts(memory=RankedMemory, servicer=FillsUp), "lim.response", "it ends at the first"
    ),
    "long texts cut by a restart": Breach(
        Parts(memory=LongTextsCutByRestart), "life.again", "the end of a text of 70000 bytes"
    ),
    "events lost by a restart": Breach(Parts(memory=EventsLostByRestart), "life.again", "an event"),
    "long days later": Breach(Parts(memory=LongDaysLater), "life.ingested", "was not returned right after its day"),
    "characters cut": Breach(Parts(servicer=CutsCharacters), "src.max-context-tokens", "a character cut in two"),
    "serving too early": Breach(Parts(servicer=ServesTooEarly), "hlt.restart", "the first Ingest was refused"),
    "sets of turns": Breach(Parts(memory=SetsOfTurns), "life.ingested", "a turn that comes twice"),
    "an end without text": Breach(Parts(memory=EndsWithoutText), "life.ingested", "turns behind one without text"),
    "ids of texts alone": Breach(Parts(memory=IdsOfTextsAlone), "life.sources", "the turn"),
    "line feeds in events": Breach(Parts(memory=LineFeedsInEvents), "life.ingested", "an event with text like"),
    "the latest under a bound": Breach(Parts(memory=KeepsTheLatest), "src.order", "of the highest score is left out"),
    "an infinite score": Breach(
        Parts(memory=InfiniteForItsOwnText, engine=Unchecked), "src.finds", "and the score inf"
    ),
    "one bound at a time": Breach(
        Parts(memory=OneBoundAtATime, engine=Unchecked), "src.max-context-tokens", "and max_items"
    ),
    "all but one": Breach(Parts(memory=AllButOne), "src.max-items", "with max_items 60 19 items"),
    "Forget by words": Breach(Parts(engine=ForgetsByWords), "life.forget", "it went with the subject"),
    "the last event stays": Breach(Parts(engine=LastEventStays), "life.forget", "its words were to be forgotten"),
    "emptied days go": Breach(Parts(engine=EmptiedDaysGo), "fgt.session", "after a Forget, Search as of day"),
    "health of the package": Breach(Parts(health=KnowsThePackage), "hlt.serving", "Health of memarena.v1.Other"),
}
