"""Backends that take in, keep, show or forget other days than they were sent."""

from __future__ import annotations

import abc
import threading
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import grpc
from memarena_backend import Call, Query, SearchResult
from memarena_backend.assembly import DayAssembler
from memarena_backend.engine import Engine, Ingested
from memarena_backend.errors import CallError, above_limit
from memarena_backend.store import Committed, DayStore
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_BYTES, DayDigest

from tests.conformance.sound import SoundMemory

STUBBORN_S = 2.0
TURN_TEXT_BYTES = 256 * 1024

Frames = Iterator[pb.IngestRequest]


def memory_of(engine: Engine) -> SoundMemory:
    memory = engine.memory
    assert isinstance(memory, SoundMemory)
    return memory


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
                    time.sleep(STUBBORN_S)

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
