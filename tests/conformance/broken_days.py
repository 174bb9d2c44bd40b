"""Defines broken backends that ingest, store, return or forget other days than they were sent (defects.toml).

The conformance suite must fail each by name (``test_broken.py``). The engine compares a day's trailer (counts and
digest) with the frames that it gets, so a class that edits frames also edits the trailer: the engine then accepts or
refuses the day exactly as a backend with this defect would.
"""

from __future__ import annotations

import abc
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import grpc
from memarena_backend import Call, Query, SearchResult
from memarena_backend.day_decoder import DayAssembler
from memarena_backend.engine import Engine, Ingested
from memarena_backend.errors import CallError, above_limit, invalid_argument
from memarena_backend.forgetting import Target
from memarena_backend.store import Committed, DayStore
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_BYTES, DayDigest

from tests.conformance.sound import WORD, SoundMemory

STUBBORN_S = 2.0
"""How long ``IgnoresDeadlines`` holds a call that its caller has ended."""
TURN_TEXT_BYTES = 256 * 1024
"""The contract's limit of a turn's text, stated here on purpose: a wrong limit in the kit must not hide itself."""

Frames = Iterator[pb.IngestRequest]


def memory_of(engine: Engine) -> SoundMemory:
    memory = engine.memory
    assert isinstance(memory, SoundMemory)
    return memory


# ------------------------------------------------------------------ what is ingested


class EditedIngest(Engine, abc.ABC):
    """An engine that gets other frames than were sent: those that ``edited`` yields."""

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        return super().ingest(header, self.edited(header, rest, call), call)

    @abc.abstractmethod
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames: ...


_CANCELLATION_ARRIVES_S = 0.2
"""Time in which a caller's cancellation reaches this process."""


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
                # The engine compares digests next: this makes it decide as if it compared those of the normal form.
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


class DigestOfAnOrder(EditedIngest):
    """Compares the trailer with the digest of the day in the order of ``arranged``; see DigestOfNormalForm."""

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        arranged = [pb.IngestRequest(header=header)]
        as_sent = DayDigest()
        as_sent.add(arranged[0])
        for frame in rest:
            if frame.HasField("trailer") and len(frame.trailer.digest) == DIGEST_BYTES:
                own = DayDigest()
                for each in self.arranged(arranged):
                    own.add(each)
                matches = frame.trailer.digest == own.digest()
                frame.trailer.digest = as_sent.digest() if matches else bytes(DIGEST_BYTES)
            yield frame
            if not frame.HasField("trailer"):
                as_sent.add(frame)
                arranged.append(_copy(frame))

    @abc.abstractmethod
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]: ...


def _copy(frame: pb.IngestRequest) -> pb.IngestRequest:
    copy = pb.IngestRequest()
    copy.CopyFrom(frame)
    return copy


def _is_split(frames: list[pb.IngestRequest]) -> bool:
    return any(frame.session.continuation for frame in frames)


class SortsSessions(DigestOfAnOrder):
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]:
        if _is_split(frames):
            return frames
        sessions = sorted((f for f in frames if f.HasField("session")), key=lambda f: f.session.session_id)
        return [frames[0], *sessions, *(f for f in frames if f.HasField("event"))]


class SortsSessionsByTime(DigestOfAnOrder):
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]:
        if _is_split(frames):
            return frames
        sessions = sorted((f for f in frames if f.HasField("session")), key=lambda f: f.session.started_at)
        return [frames[0], *sessions, *(f for f in frames if f.HasField("event"))]


class SortsTurns(DigestOfAnOrder):
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]:
        for frame in frames:
            turns = sorted(frame.session.turns, key=lambda turn: turn.said_at)
            if frame.HasField("session"):
                del frame.session.turns[:]
                frame.session.turns.extend(turns)
        return frames


class SortsEvents(DigestOfAnOrder):
    def arranged(self, frames: list[pb.IngestRequest]) -> list[pb.IngestRequest]:
        events = sorted((f for f in frames if f.HasField("event")), key=lambda f: f.event.event_id)
        return [*(f for f in frames if not f.HasField("event")), *events]


class ComparesTimesAsText(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        for frame in rest:
            if frame.session.ended_at and frame.session.ended_at < frame.session.started_at:
                raise invalid_argument("session.ended_at", "is before started_at")
            yield frame


class KeepsDamagedStaging(Engine):
    """Adds the frames of a day that was DATA_LOSS to the next day of the same batch."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._staged: dict[tuple[str, str], list[pb.IngestRequest]] = {}

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        frames, key = [pb.IngestRequest(header=header)], (header.namespace, header.batch_id)

        def noted() -> Frames:
            for frame in rest:
                if not frame.HasField("trailer"):
                    frames.append(_copy(frame))
                yield frame

        try:
            result = super().ingest(header, noted(), call)
        except CallError as error:
            if error.code is grpc.StatusCode.DATA_LOSS:
                self._staged[key] = frames
            raise
        staged, days = self._staged.pop(key, None), memory_of(self).days.get(header.namespace)
        if staged is not None and days:
            digest, assembler = DayDigest(), DayAssembler()
            for frame in staged:
                digest.add(frame)
                assembler.add(frame)
            assembler.add(pb.IngestRequest(trailer=digest.trailer()))
            there = {session.session_id for session in days[-1].sessions}
            missing_sessions = tuple(s for s in assembler.finish().day.sessions if s.session_id not in there)
            days[-1] = replace(days[-1], sessions=(*missing_sessions, *days[-1].sessions))
        return result


class CutsBatchIds(DayStore):
    """Batch ids are compared by their first 64 bytes."""

    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        with self._guarded() as db:
            row = db.execute(
                "SELECT day_index, digest FROM days WHERE namespace = ? AND substr(batch_id, 1, 64) = ?",
                (namespace, batch_id[:64]),
            ).fetchone()
        return None if row is None else Committed(int(row[0]), bytes(row[1]))


class ResetForgetsEveryLedger(Engine):
    """A Reset empties the one table that holds the batch ids of all namespaces."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        find, self._lost = self._store.find_batch, set[tuple[str, str]]()
        self._known = set[tuple[str, str]]()

        def unless_lost(namespace: str, batch_id: str) -> Committed | None:
            self._known.add((namespace, batch_id))
            return None if (namespace, batch_id) in self._lost else find(namespace, batch_id)

        self._store.find_batch = unless_lost  # type: ignore[method-assign]

    def reset(self, namespace: str, call: Call) -> None:
        super().reset(namespace, call)
        self._lost |= self._known


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
        result = super().ingest(header, rest, call)
        days = memory_of(self).days.get(header.namespace, [])
        if days:
            days[-1] = replace(
                days[-1],
                sessions=tuple(
                    replace(s, turns=tuple(t for t in s.turns if t.turn_id in self._kept[s.session_id]))
                    for s in days[-1].sessions
                ),
            )
        return result


class FailsAtTheLimit(EditedIngest):
    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        for frame in rest:
            for turn in frame.session.turns:
                if len(turn.text.encode()) == TURN_TEXT_BYTES:
                    raise above_limit("session.turns.text", TURN_TEXT_BYTES, TURN_TEXT_BYTES)
            yield frame


class KeepsCancelledDays(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        frames = [pb.IngestRequest(header=header)]

        def noted() -> Frames:
            for frame in rest:
                frames.append(frame)
                yield frame

        try:
            return super().ingest(header, noted(), call)
        except grpc.RpcError:  # gRPC raises it for the reader of a stream that was cancelled
            days = memory_of(self).days.get(header.namespace)
            if days:
                digest, assembler = DayDigest(), DayAssembler()
                for frame in frames:
                    digest.add(frame)
                    assembler.add(frame)
                assembler.add(pb.IngestRequest(trailer=digest.trailer()))
                days.append(replace(assembler.finish().day, index=days[-1].index))
            raise


class ForgetsOnReplay(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        result = super().ingest(header, rest, call)
        if result.replayed:
            days = memory_of(self).days[header.namespace]
            days[:] = [day for day in days if day.index != header.day_index]
        return result


class DoublesOnReplay(Engine):
    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        result = super().ingest(header, rest, call)
        if result.replayed:
            days = memory_of(self).days[header.namespace]
            days += [day for day in days if day.index == header.day_index][:1]
        return result


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
    """A call that never counts as ended: it has no context in which the caller's cancellation could show."""

    def __init__(self, call: Call) -> None:
        super().__init__(None, call.models)


# ------------------------------------------------------------------ what is remembered


class ForgetsBatchIds(DayStore):
    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        return None


class KnowsFewBatches(DayStore):
    """Remembers the batch ids of the last sixteen days."""

    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        returned = super().find_batch(namespace, batch_id)
        if returned is None:
            return None
        query = "SELECT count(*) FROM days WHERE namespace = ? AND day_index > ?"
        with self._guarded() as db:
            (later,) = db.execute(query, (namespace, returned.day_index)).fetchone()
        return returned if later < 16 else None


class KnowsBatchesForAMoment(DayStore):
    """Remembers a batch id for a moment of its own clock."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        self._since: dict[tuple[str, str], float] = {}

    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        now = time.monotonic()
        old = now - self._since.setdefault((namespace, batch_id), now) > 1.5
        return None if old else super().find_batch(namespace, batch_id)


class BatchIdsOfAll(DayStore):
    """Looks for a batch id in every namespace of earlier calls."""

    _namespaces: ClassVar[set[str]] = set()

    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        self._namespaces.add(namespace)
        returned = (DayStore.find_batch(self, each, batch_id) for each in (namespace, *sorted(self._namespaces)))
        return next((each for each in returned if each is not None), None)


class DaysGoBack(DayStore):
    """Accepts a day with a lower index than the last.

    The engine looks up the batch id, then the last day: right after a look-up of a new batch id there is no last day.
    """

    _asked = threading.local()

    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        returned = super().find_batch(namespace, batch_id)
        self._asked.new = returned is None
        return returned

    def last_day(self, namespace: str) -> int | None:
        new, self._asked.new = getattr(self._asked, "new", False), False
        return None if new else super().last_day(namespace)


class ResetKeeps(Engine):
    def reset(self, namespace: str, call: Call) -> None:
        """Nothing."""


class ForgetKeepsTheIndex(Engine):
    def forget(self, namespace: str, target: Target, call: Call) -> int:
        visible = self._visible_through.get(namespace)
        days = list(memory_of(self).days.get(namespace, ()))
        deleted = super().forget(namespace, target, call)
        if visible is not None:
            self._visible_through[namespace] = visible
            memory_of(self).days[namespace] = days
        return deleted


class ForgetTakesTheDay(Engine):
    def forget(self, namespace: str, target: Target, call: Call) -> int:
        return super().forget(namespace, _WholeDays(target.session_id, target.says), call)


class _WholeDays(Target):
    def frames_without(self, frames: Iterable[pb.IngestRequest]) -> tuple[list[pb.IngestRequest], int]:
        whole = list(frames)
        remaining_frames, removed_count = super().frames_without(whole)
        return (
            [frame for frame in remaining_frames if frame.HasField("header")] if removed_count else remaining_frames
        ), removed_count


class ForgetTakesWholeTurns(Engine):
    """Deletes only texts that equal the fact's text, not those that contain it; subjects match as they should."""

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        def says(text: str) -> bool:
            part = target.says(text[1:]) or target.says(text[:-1])
            return target.says(text) and (_by_name(target, text) or not part)

        return super().forget(namespace, replace(target, says=says), call)


class ForgetTakesSingleWords(Engine):
    """Matches a subject against single words, so that a name of two words is not deleted."""

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        def says(text: str) -> bool:
            single = any(target.says(word) for word in WORD.findall(text))
            return target.says(text) and (single or not _by_name(target, text))

        return super().forget(namespace, replace(target, says=says), call)


def _by_name(target: Target, text: str) -> bool:
    """Whether a text matches by a subject's name, for which letter case does not matter."""
    return target.says(text.swapcase())


class ForgetForgetsTheBatch(Engine):
    """The day is removed from the ledger, so that a replay brings it back."""

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        before = dict(self._store._db.execute("SELECT day_index, frames FROM days WHERE namespace = ?", (namespace,)))
        deleted = super().forget(namespace, target, call)
        for index, batch in list(
            self._store._db.execute("SELECT day_index, batch_id FROM days WHERE namespace = ?", (namespace,))
        ):
            query = "SELECT frames FROM days WHERE namespace = ? AND day_index = ?"
            if self._store._db.execute(query, (namespace, index)).fetchone()[0] != before[index]:
                self._store._db.execute(
                    "UPDATE days SET batch_id = ? WHERE namespace = ? AND batch_id = ?",
                    (f"old-{batch}", namespace, batch),
                )
        return deleted


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
    """Does not check that results are within the requested bounds."""

    def _check_result(self, result: SearchResult, query: Query) -> None:
        """Nothing."""
