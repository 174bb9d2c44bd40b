"""Defines broken backends whose calls affect each other, or one of whose calls lacks a rule of the others.

A suite that makes one call at a time passes them; ``test_broken.py`` holds the conformance suite to detecting each. A
class without a docstring does what its name says; its row in defects.toml says it in a sentence.
"""

from __future__ import annotations

import html
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import unquote

import grpc
from grpc_health.v1 import health, health_pb2
from memarena_backend import Call, Day, Item, Notice, Query, SearchResult
from memarena_backend.engine import Engine, Ingested, SearchOutcome
from memarena_backend.errors import CallError, above_limit, invalid_argument
from memarena_backend.forgetting import Target
from memarena_backend.servicer import Servicer
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_BYTES, DayDigest

from tests.conformance.broken_answers import Events
from tests.conformance.broken_days import EditedIngest, Frames, memory_of
from tests.conformance.sound import SoundMemory

_MOST_TURNS = 1000


# ------------------------------------------------------------------ answers


class AnswerKeepsTheChat(Servicer):
    """The question before is part of the prompt, as in a chat."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        assert self._answerer is not None
        whole, self._before = self._answerer.answer, ""

        def answer(query: Query, *rest: Any) -> Events:
            joined_query, self._before = replace(query, text=f"{self._before} {query.text}".strip()), query.text
            return whole(joined_query, *rest)

        self._answerer.answer = answer  # type: ignore[assignment, method-assign]


class AnswerSharesItsBuffer(Servicer):
    """The reply is put together in one variable for all calls."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._said: list[str] = []

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if event.HasField("retrieved"):
                self._said.clear()
            elif event.HasField("text_delta"):
                self._said.append(event.text_delta.text)
            elif self._said:
                event.completed.text = "".join(self._said)
            yield event


class AnswerKnowsStrangers(Servicer):
    """Answers "I do not know." for a namespace that does not exist, where the contract asks for NOT_FOUND."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        try:
            yield from super().answer(request, context)
        except CallError as error:
            if error.code is not grpc.StatusCode.NOT_FOUND:
                raise
            yield pb.AnswerEvent(retrieved=pb.Retrieved())
            yield pb.AnswerEvent(completed=pb.Completed(text="I do not know.", finish_reason=pb.FINISH_REASON_STOP))


class AnswerTakesAnyOption(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        request.search.ClearField("options")
        return super().answer(request, context)


class AnswerEndsWhatBrokeOff(Servicer):
    """A reply that breaks off is completed as far as it came."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        reported: list[str] = []
        try:
            for event in super().answer(request, context):
                if event.HasField("text_delta"):
                    reported.append(event.text_delta.text)
                yield event
        except CallError:
            if not reported:
                raise
            yield pb.AnswerEvent(completed=pb.Completed(text="".join(reported), finish_reason=pb.FINISH_REASON_STOP))


class AnswerIsNeverGreedy(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        request.reading.temperature = request.reading.temperature or 0.7
        return super().answer(request, context)


class AnswerGuessesUsage(Servicer):
    """Reports estimated tokens where the reader reported none."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if event.HasField("completed") and not event.completed.HasField("usage"):
                event.completed.usage.completion_tokens = len(event.completed.text) // 4
            yield event


class AnswerSaysTheDayAsked(Servicer):
    """Retrieved repeats as_of_day, also where nothing was committed on that day."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if event.HasField("retrieved"):
                event.retrieved.visible_through_day = request.search.as_of_day
            yield event


class SearchesOneAtATime(SoundMemory):
    def __init__(self) -> None:
        super().__init__()
        self._busy: set[str] = set()

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        if namespace in self._busy:
            raise CallError(grpc.StatusCode.ABORTED, "another search of the namespace is pending")
        self._busy.add(namespace)
        try:
            time.sleep(0.03)
            return super().search(namespace, query, call)
        finally:
            self._busy.discard(namespace)


class RefusesLaterValues(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        if request.reading.thinking not in pb.Thinking.values():
            raise invalid_argument("reading.thinking", "unknown value")
        return super().answer(request, context)


# ------------------------------------------------------------------ memories


class SanitisesNames(SoundMemory):
    """Namespaces become names of tables, in which an underscore stands for every other sign."""

    def _table(self, namespace: str) -> str:
        return re.sub(r"\W", "_", namespace)

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        return super().commit_day(self._table(namespace), day, call)

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(self._table(namespace), days, call)

    def searched(self, namespace: str, query: Query) -> list[Day]:
        return super().searched(self._table(namespace), query)

    def forget(self, namespace: str) -> None:
        super().forget(self._table(namespace))


class ReadsNamesAsPaths(SanitisesNames):
    """Namespaces become folders, and a number loses its leading zeros."""

    def _table(self, namespace: str) -> str:
        return str(int(namespace)) if namespace.isdigit() else os.path.normpath(unquote(namespace))


class NamesTheLastSession(SoundMemory):
    """Every turn names the last session of its day."""

    def matches(self, namespace: str, query: Query) -> list[Item]:
        last = {
            s.session_id: day.sessions[-1].session_id for day in self.searched(namespace, query) for s in day.sessions
        }
        returned = super().matches(namespace, query)
        return [replace(item, session_ids=tuple(last[each] for each in item.session_ids)) for item in returned]


class KnowsPeopleById(SoundMemory):
    """Shows a speaker under the name that the first owner with this id had, in whichever namespace that was."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, str] = {}

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        self._names.setdefault(day.owner.participant_id, day.owner.display_name)
        return super().commit_day(namespace, day, call)

    def matches(self, namespace: str, query: Query) -> list[Item]:
        speakers = {
            turn.turn_id: turn.speaker.participant_id
            for day in self.searched(namespace, query)
            for session in day.sessions
            for turn in session.turns
        }
        return [
            replace(item, text=f"{item.text} ({self._names.get(speakers[item.turn_ids[0]], '')})")
            if item.turn_ids
            else item
            for item in super().matches(namespace, query)
        ]


class ErrorsListNamespaces(Servicer):
    """The error for an unknown namespace lists the namespaces of other callers."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._met: set[str] = set()

    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        self._met.add(request.namespace)
        try:
            return super().search(request, context)
        except CallError as error:
            if error.code == grpc.StatusCode.NOT_FOUND:
                raise CallError(error.code, f"not among {sorted(self._met)}") from error
            raise


class EscapesText(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [replace(item, text=html.escape(item.text)) for item in super().matches(namespace, query)]


class AsksAQueryLanguage(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        if query.text.count('"') % 2:
            raise CallError(grpc.StatusCode.INTERNAL, "syntax error: unterminated string")
        return super().search(namespace, query, call)


class LivesByTheClock(SoundMemory):
    """Leaves out items of later years than the machine's clock shows; days of a life may lie in the future."""

    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [
            item
            for item in super().matches(namespace, query)
            if item.time is None or item.time[:4] <= str(datetime.now().year)
        ]


class NamesNoTurns(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [replace(item, turn_ids=()) for item in super().matches(namespace, query)]


# ------------------------------------------------------------------ days


class CountsTurns(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        turns = 0
        for frame in rest:
            turns += len(frame.session.turns)
            if turns > _MOST_TURNS:
                raise above_limit("turns", turns, _MOST_TURNS)
            yield frame


class OneDayAtATime(Engine):
    """A lock over all namespaces."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._busy = threading.Lock()

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        if not self._busy.acquire(blocking=False):
            raise CallError(grpc.StatusCode.ABORTED, "another day is being ingested")
        try:
            return super().ingest(header, rest, call)
        finally:
            self._busy.release()


class HealthWhileIdle(health.HealthServicer):  # type: ignore[misc]
    """NOT_SERVING as long as a day arrives."""

    def Check(self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext) -> Any:
        if CountsDays.under_way:
            return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
        return super().Check(request, context)


class CountsDays(Engine):
    """Counts the days that arrive, for :class:`HealthWhileIdle`."""

    under_way: ClassVar[set[str]] = set()

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        self.under_way.add(header.batch_id)
        try:
            return super().ingest(header, rest, call)
        finally:
            self.under_way.discard(header.batch_id)


class ComparesHalfTheDigest(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        for frame, digest in _with_digest(header, rest):
            if len(frame.trailer.digest) == DIGEST_BYTES and frame.trailer.digest[:16] == digest[:16]:
                frame.trailer.digest = digest
            yield frame


class AnybodySpeaksLater(EditedIngest):
    """Whoever speaks in a continuation is treated as a participant."""

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        full_digest, accepted = DayDigest(), DayDigest()
        for digest in (full_digest, accepted):
            digest.add(pb.IngestRequest(header=header))
        known: set[str] = set()
        for frame in rest:
            if frame.HasField("trailer"):
                if frame.trailer.digest == full_digest.trailer().digest:
                    frame.trailer.digest = accepted.trailer().digest
                yield frame
                continue
            try:
                full_digest.add(frame)
                known |= {each.participant_id for each in frame.session.participants}
                for turn in frame.session.turns if frame.session.continuation else ():
                    turn.speaker_id = turn.speaker_id if turn.speaker_id in known else min(known)
                accepted.add(frame)
            except ValueError:
                pass  # refused by the engine itself
            yield frame


def _with_digest(header: pb.DayHeader, rest: Frames) -> Iterator[tuple[pb.IngestRequest, bytes]]:
    digest, sound = DayDigest(), True
    digest.add(pb.IngestRequest(header=header))
    for frame in rest:
        if frame.HasField("trailer"):
            yield frame, digest.trailer().digest if sound else b""
            continue
        try:
            digest.add(frame)
        except ValueError:
            sound = False  # refused by the engine itself
        yield frame, b""


class NoLeapSecond(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        for frame in rest:
            if ":60" in frame.session.started_at[16:]:
                raise invalid_argument("session.started_at", "second must be in 0..59")
            yield frame


class ShowsWhatArrives(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        early = memory_of(self).__dict__.setdefault("early", {})
        try:
            for frame in rest:
                texts = [turn.text for turn in frame.session.turns]
                early.setdefault(header.namespace, []).extend(texts)
                yield frame
        finally:
            early.pop(header.namespace, None)

    def search(self, namespace: str, query: Query, call: Call) -> SearchOutcome:
        try:
            return super().search(namespace, query, call)
        except CallError as error:
            if error.code is not grpc.StatusCode.ABORTED:
                raise
            texts = memory_of(self).__dict__.get("early", {}).get(namespace, ())
            return SearchOutcome(SearchResult([Item(text, 1.0) for text in texts]), query.as_of_day, 0)


# ------------------------------------------------------------------ Forget


class ForgetFoldsCase(Engine):
    def forget(self, namespace: str, target: Target, call: Call) -> int:
        either = replace(target, says=lambda text: any(target.says(each) for each in (text, text.upper())))
        return super().forget(namespace, either, call)


class ForgetInEveryNamespace(Engine):
    def forget(self, namespace: str, target: Target, call: Call) -> int:
        for other in [each for each in memory_of(self).days if each != namespace]:
            if self._store.last_day(other) is not None:
                super().forget(other, target, call)
        return super().forget(namespace, target, call)


class ForgetForGood(Engine):
    """What was to be forgotten is left out of later days as well."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._never: dict[str, list[Target]] = {}

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        self._never.setdefault(namespace, []).append(target)
        return super().forget(namespace, target, call)

    def search(self, namespace: str, query: Query, call: Call) -> SearchOutcome:
        returned = super().search(namespace, query, call)
        never = self._never.get(namespace, ())
        items = [item for item in returned.result.items if not any(target.says(item.text) for target in never)]
        return replace(returned, result=replace(returned.result, items=items))
