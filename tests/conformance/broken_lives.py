"""Defines broken backends whose fault shows only over many days, several questions or a restart (test_lives.py).

A vendor's own short test passes with each of them. The conformance suite sends a *life* (many days of one person) and
asks for each entry; ``BREACHES`` names for each fault the check that must fail and a part of its message.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import grpc
from grpc_health.v1 import health, health_pb2
from memarena_backend import Call, Day, Item, Notice, Query, SearchResult
from memarena_backend.engine import Engine, Ingested
from memarena_backend.errors import CallError
from memarena_backend.forgetting import Target
from memarena_backend.records import AskerKind, Requester, Session, Turn
from memarena_backend.servicer import Servicer
from memarena_backend.store import Committed, DayStore, _unpack
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DayDigest

from tests.conformance.broken_calls import ForgetFoldsCase, ForgetForGood
from tests.conformance.broken_days import BatchIdsOfAll, EditedIngest, memory_of
from tests.conformance.broken_memories import CatchesUp
from tests.conformance.broken_retrieval import RankedMemory, words_of
from tests.conformance.broken_wire import LetsEvidenceIn
from tests.conformance.sound import Parts, SoundMemory

Events = Iterator[pb.AnswerEvent]
Frames = Iterator[pb.IngestRequest]


# ------------------------------------------------------------------ what a restart changes


class Mojibake(SoundMemory):
    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(namespace, [edited(day, lambda t: t.encode().decode("latin-1")) for day in days], call)


class DoubledByRestart(SoundMemory):
    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(namespace, [day for day in days for _ in range(2)], call)


class VerticalTabsLost(SoundMemory):
    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(namespace, [edited(day, lambda text: text.replace("\v", " ")) for day in days], call)


class HoursLost(SoundMemory):
    """After a restart a turn's time is the local hour with Z."""

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        def turns(session: Session) -> tuple[Turn, ...]:
            return tuple(replace(turn, said_at=turn.said_at.replace(tzinfo=UTC)) for turn in session.turns)

        super().restore(namespace, [with_turns(day, turns) for day in days], call)


class DaysByName(SoundMemory):
    """After a restart, day 10 is before day 2, as days are sorted as text."""

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(namespace, sorted(days, key=lambda day: str(day.index)), call)


class NearNamesInOneFile(SoundMemory):
    """After a restart, namespaces that differ only in letter case are one."""

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        whole = [*days]
        shared_days = self.days.setdefault(namespace.lower(), [])
        shared_days += whole
        self.days[namespace] = shared_days


class LosesOnRestart(DayStore):
    """Loses some days when its process ends."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        namespaces: set[str] = set()
        with self._guarded() as db:
            query = "SELECT namespace, day_index, frames FROM days ORDER BY day_index"
            for namespace, index, frames in [*db.execute(query)]:
                if self.lost(_unpack(frames), is_first=namespace not in namespaces):
                    db.execute("DELETE FROM days WHERE namespace = ? AND day_index = ?", (namespace, index))
                namespaces.add(namespace)

    def lost(self, frames: Sequence[pb.IngestRequest], *, is_first: bool) -> bool:
        return len(frames) == 2


class FirstDayInMemoryOnly(LosesOnRestart):
    def lost(self, frames: Sequence[pb.IngestRequest], *, is_first: bool) -> bool:
        return is_first


# ------------------------------------------------------------------ what is lost of a day


def edited(day: Day, text: Any) -> Day:
    """Return the day with ``text`` applied to the text of each turn."""
    return with_turns(day, lambda s: tuple(replace(turn, text=text(turn.text)) for turn in s.turns))


def with_turns(day: Day, turns: Any) -> Day:
    return replace(day, sessions=tuple(replace(session, turns=turns(session)) for session in day.sessions))


class Takes(SoundMemory):
    """Ingests the day that ``edit`` returns instead of the one that was sent, also after a restart."""

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        return super().commit_day(namespace, self.edit(day), call)

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        super().restore(namespace, [self.edit(day) for day in days], call)

    def edit(self, day: Day) -> Day:
        return day


class CutsAt64KiB(Takes):
    def edit(self, day: Day) -> Day:
        return edited(day, lambda text: text[: 1 << 16])


class OneTurnATime(Takes):
    def edit(self, day: Day) -> Day:
        return with_turns(day, lambda s: tuple({turn.said_at: turn for turn in s.turns}.values()))


class OneTurnOfASpeakerATime(Takes):
    def edit(self, day: Day) -> Day:
        return with_turns(day, lambda s: tuple({(t.said_at, t.speaker): t for t in reversed(s.turns)}.values())[::-1])


class PlainApostrophes(Takes):
    def edit(self, day: Day) -> Day:
        return edited(day, lambda text: text.replace("\u2019", "'"))


class FirstOfVeryManyTurns(Takes):
    def edit(self, day: Day) -> Day:
        return with_turns(day, lambda s: s.turns[: max(100, len(s.turns) - 60)])


class ShortWordsAlone(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return super().matches(namespace, replace(query, text=re.sub(r"\w{24,}", "", query.text)))


class FirstHundredTurns(Takes):
    def edit(self, day: Day) -> Day:
        return with_turns(day, lambda s: s.turns[:100])


class FirstFiftyEvents(Takes):
    def edit(self, day: Day) -> Day:
        return replace(day, events=day.events[:50])


class FirstContinuationOnly(EditedIngest):
    """Keeps only the first two frames of a session, the opening and one continuation; the trailer is its own."""

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        digest, parts = DayDigest(), 0
        digest.add(pb.IngestRequest(header=header))
        for frame in rest:
            parts = parts + 1 if frame.HasField("session") and frame.session.continuation else 0
            if parts > 1:
                continue
            if frame.HasField("trailer"):
                yield pb.IngestRequest(trailer=digest.trailer())
            else:
                digest.add(frame)
                yield frame


class WholeSeconds(EditedIngest):
    """Compares the times of a session without their fractions."""

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        digest = DayDigest()
        digest.add(pb.IngestRequest(header=header))
        for frame in rest:
            if frame.HasField("session"):
                for name in ("started_at", "ended_at"):
                    setattr(frame.session, name, re.sub(r"\.\d+", "", getattr(frame.session, name)))
            if frame.HasField("trailer"):
                yield pb.IngestRequest(trailer=digest.trailer())
            else:
                digest.add(frame)
                yield frame


class Resealed(EditedIngest):
    """Replaces the trailer of some days by one that fits, which hides a wrong digest; ``wrong``: whether it was."""

    wrong = False

    def edited(self, header: pb.DayHeader, rest: Frames, call: Call) -> Frames:
        digest, self.wrong = DayDigest(), False
        digest.add(pb.IngestRequest(header=header))
        for number, frame in enumerate(rest):
            if not frame.HasField("trailer"):
                digest.add(frame)
            elif self.reseals(number):
                self.wrong = frame.trailer.digest != digest.digest()
                frame = pb.IngestRequest(trailer=digest.trailer())  # noqa: PLW2901
            yield frame

    def reseals(self, frames: int) -> bool:
        return True


class EmptyDaysUnchecked(Resealed):
    def reseals(self, frames: int) -> bool:
        return not frames


class RefusedDaysOnDisk(Resealed):
    """Refuses a day whose digest is wrong, but has it after a restart."""

    def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
        ingested = super().ingest(header, rest, call)
        if self.wrong:
            memory_of(self).days[header.namespace].pop()
            raise CallError(grpc.StatusCode.DATA_LOSS, "another digest")
        return ingested


class EventsOfAllDays(SoundMemory):
    """With an earlier as_of_day, returns turns up to that day, but events of all days."""

    def searched(self, namespace: str, query: Query) -> list[Day]:
        days = [*self.days.get(namespace, ())]
        return [day if day.index <= query.as_of_day else replace(day, sessions=()) for day in days]


class EventsOfTheNextDay(SoundMemory):
    """With an earlier as_of_day, also returns the next day if it has only events."""

    def searched(self, namespace: str, query: Query) -> list[Day]:
        days = [*self.days.get(namespace, ())]
        visible_days = [day for day in days if day.index <= query.as_of_day]
        return [*visible_days, *(day for day in days[len(visible_days) : len(visible_days) + 1] if not day.sessions)]


class AtMostFifty(SoundMemory):
    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        return super().search(namespace, replace(query, max_items=query.max_items and min(query.max_items, 50)), call)


class AllOrNothing(SoundMemory):
    """Returns no items if not all of them fit the budget."""

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        result = super().search(namespace, query, call)
        return replace(result, items=()) if query.max_context_tokens and result.truncated else result


class SmallLetters(Takes):
    def edit(self, day: Day) -> Day:
        return edited(day, str.lower)


class AsciiIndex(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        query_words = {*re.findall(r"[a-z0-9_]+", query.text.lower())}
        return [
            i for i in super().matches(namespace, query) if query_words & {*re.findall(r"[a-z0-9_]+", i.text.lower())}
        ]


class EventsLater(CatchesUp):
    """Indexes events after the next question."""

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        if day.events:
            self.left.append(partial(self.complete, namespace, day))
        return super().commit_day(namespace, replace(day, events=()), call)


# ------------------------------------------------------------------ what items say


class Labels(SoundMemory):
    """Returns for each turn the item that ``label`` makes of it."""

    def matches(self, namespace: str, query: Query) -> list[Item]:
        positions = {
            turn.turn_id: (day, session, turn)
            for day in self.searched(namespace, query)
            for session in day.sessions
            for turn in session.turns
        }
        returned = super().matches(namespace, query)
        return [self.label(i, namespace, *positions[i.turn_ids[0]]) if i.turn_ids else i for i in returned]

    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        return item


class HourOfItsOwn(Labels):
    """Replaces the UTC offset of times by Z."""

    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        return replace(item, time=turn.said_at.replace(tzinfo=UTC).isoformat())


class NextDay(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        return replace(item, time=(turn.said_at + timedelta(days=2)).date().isoformat())


class EventBefore(SoundMemory):
    """Names the previous event as the source of an event's item."""

    def matches(self, namespace: str, query: Query) -> list[Item]:
        days = [day.events for day in self.searched(namespace, query)]
        before = {each.text: events[index - 1].event_id for events in days for index, each in enumerate(events)}
        returned = super().matches(namespace, query)
        return [replace(item, event_ids=(before[item.text],)) if item.text in before else item for item in returned]


class NeighboursWords(Labels):
    """Adds the text of the previous turn to an item, without naming it as a source."""

    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        index = session.turns.index(turn)
        return replace(item, text=f"{session.turns[index - 1].text}\n{item.text}") if index else item


class NeighbourSessionsWords(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        index = day.sessions.index(session)
        before = day.sessions[index - 1].turns if index else ()
        return replace(item, text=f"{before[-1].text}\n{item.text}", turn_ids=()) if before else item


class EverySession(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        every = tuple(each.session_id for other_day in self.days[namespace] for each in other_day.sessions)
        return replace(item, session_ids=every)


class LaterName(Labels):
    """Shows the latest display name of a person for all days."""

    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        names = {
            p.participant_id: p.display_name for d in self.days[namespace] for s in d.sessions for p in s.participants
        }
        return replace(item, text=f"{names[turn.speaker.participant_id]}: {item.text}")


class WrongSpeaker(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        other = next(p for p in session.participants if p != turn.speaker)
        return replace(item, text=f"{other.display_name}: {item.text}")


class SpeakerById(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        return replace(item, text=f"{turn.speaker.participant_id}: {item.text}")


class LongTextsWithoutSource(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        return replace(item, session_ids=(), turn_ids=()) if len(item.text) > 1_000 else item


class TurnIdsFolded(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        ids = {t.turn_id.lower(): t.turn_id for s in day.sessions for t in s.turns}
        return replace(item, turn_ids=(ids[turn.turn_id.lower()],))


class SessionIdsFolded(Labels):
    def label(self, item: Item, namespace: str, day: Day, session: Session, turn: Turn) -> Item:
        ids = {each.session_id.lower(): each.session_id for each in day.sessions}
        return replace(item, session_ids=(ids[session.session_id.lower()],))


class BatchIdsFolded(DayStore):
    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        query = "SELECT day_index, digest FROM days WHERE namespace = ? AND lower(batch_id) = ? ORDER BY day_index"
        with self._guarded() as db:
            row = db.execute(query, (namespace, batch_id.lower())).fetchone()
        return None if row is None else Committed(int(row[0]), bytes(row[1]))


class ResetsWithoutCase(DayStore):
    def remove(self, namespace: str) -> None:
        with self._guarded() as db:
            db.execute("DELETE FROM days WHERE lower(namespace) = lower(?)", (namespace,))


class ResetsTheLastDay(DayStore):
    def remove(self, namespace: str) -> None:
        with self._guarded() as db:
            (last,) = db.execute("SELECT max(day_index) FROM days WHERE namespace = ?", (namespace,)).fetchone()
            db.execute("DELETE FROM days WHERE namespace = ? AND day_index = ?", (namespace, last))


# ------------------------------------------------------------------ Forget


class Forgets(Engine):
    """Matches a subject in its own way (``meant``).

    A Target has only a function from a text to whether it matches. The name is read from this function's closure, and
    a subject differs from a fact's text by its match, which ignores letter case.
    """

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        closure = target.says.__closure__
        name = closure[0].cell_contents if closure else ""
        if target.says("") or not isinstance(name, str) or not target.says(name.upper()):
            return super().forget(namespace, target, call)
        return super().forget(namespace, replace(target, says=lambda text: self.meant(name, text.casefold())), call)

    def meant(self, name: str, text: str) -> bool:
        return name in text


class ForgetsByPattern(Forgets):
    def meant(self, name: str, text: str) -> bool:
        return re.search(re.escape(name).replace("%", ".*").replace("_", "."), text) is not None


class ForgetsByRegularExpression(Forgets):
    def meant(self, name: str, text: str) -> bool:
        return re.search(name, text) is not None


class ForgetsByFirstName(Forgets):
    def meant(self, name: str, text: str) -> bool:
        return name.split(maxsplit=1)[0] in text


class ForgetsSessions(Engine):
    """Deletes the whole session of each turn that is to be forgotten."""

    def forget(self, namespace: str, target: Target, call: Call) -> int:
        sessions = [session for day in memory_of(self).days[namespace] for session in day.sessions]
        meant = [each.session_id for each in sessions if any(target.says(turn.text) for turn in each.turns)]
        for session_id in meant:
            super().forget(namespace, Target(session_id=session_id), call)
        return super().forget(namespace, target, call)


class ForgetsButCounts(RankedMemory):
    """Keeps the word frequencies of forgotten turns, by which scores show that they existed."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[str, list[frozenset[str]]] = {}

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        reported = [words_of(turn.text) for session in day.sessions for turn in session.turns]
        self._counted.setdefault(namespace, []).extend(reported)
        return super().commit_day(namespace, day, call)

    def corpus(self, namespace: str, query: Query) -> list[frozenset[str]]:
        return [*super().corpus(namespace, query), *self._counted.get(namespace, ())]


# ------------------------------------------------------------------ prompts


class Prompts(Servicer):
    """Sends the reader other items or another question than those of the call."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        assert self._answerer is not None
        whole = self._answerer.answer
        self._answerer.answer = (  # type: ignore[method-assign]  # this is what is broken
            lambda query, asked_at, items, plan, models, call: whole(
                self.asked(query), asked_at, self.shown(items), plan, models, call
            )
        )

    def asked(self, query: Query) -> Query:
        return query

    def shown(self, items: Sequence[Item]) -> Sequence[Item]:
        return items


class PromptOfTheFirst(Prompts):
    def shown(self, items: Sequence[Item]) -> Sequence[Item]:
        return items[:1]


class PromptOfBeginnings(Prompts):
    def shown(self, items: Sequence[Item]) -> Sequence[Item]:
        return [replace(item, text=item.text[:500]) for item in items]


class PromptOfAnother(Prompts):
    """Stores the items in one variable that all calls share."""

    _items: Sequence[Item] = ()

    def shown(self, items: Sequence[Item]) -> Sequence[Item]:
        self._items = items
        time.sleep(0.01)
        return self._items


class OwnerAsks(Prompts):
    def asked(self, query: Query) -> Query:
        return replace(query, requester=Requester(AskerKind.OWNER))


class RelationsWithoutNames(Prompts):
    def asked(self, query: Query) -> Query:
        return replace(query, requester=Requester(AskerKind.ANONYMOUS)) if query.requester.relationship else query


class OwnerAndStrangerMixed(Prompts):
    def asked(self, query: Query) -> Query:
        if query.requester.kind is AskerKind.OWNER:
            return replace(query, requester=Requester(AskerKind.ANONYMOUS))
        return replace(query, requester=Requester(AskerKind.OWNER))


# ------------------------------------------------------------------ the reader's stream


class ReadsByHand(Servicer):
    """Parses the reader's stream by hand: takes each ``data:`` line as an event, though an event may have several."""

    prefix = "data:"
    line_end = "\n"
    more: ClassVar[dict[str, object]] = {}

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        events = super().answer(request, context)
        try:
            yield next(events)
        finally:
            events.close()  # type: ignore[attr-defined]  # the kit gives a generator
        access, reading = request.search.model_access, request.reading
        items = "\n".join(item.text for item in super().search(request.search, context).items)
        body = {"model": reading.model, "max_tokens": reading.max_tokens, "temperature": reading.temperature,
                "seed": reading.seed, "stream": True, "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": f"{items}\n{request.search.text}"}], **self.more}  # fmt: skip
        http_request = urllib.request.Request(
            f"{access.base_url}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {access.token}"},
        )
        texts, usage, finish = [], None, pb.FINISH_REASON_STOP
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(http_request, timeout=10) as reply:
            for line in reply.read().decode().split(self.line_end):
                data = line.removeprefix(self.prefix).strip() if line.startswith(self.prefix) else ""
                if not data or data == "[DONE]":
                    continue
                chunk = json.loads(data)
                for choice in chunk["choices"]:
                    texts.append(choice["delta"].get("content") or "")
                    if choice["finish_reason"] == "length":
                        finish = pb.FINISH_REASON_LENGTH
                if token_counts := chunk.get("usage"):
                    usage = pb.TokenUsage(prompt_tokens=token_counts["prompt_tokens"],
                                          completion_tokens=token_counts["completion_tokens"])  # fmt: skip
        yield from (pb.AnswerEvent(text_delta=pb.TextDelta(text=text)) for text in texts if text)
        yield pb.AnswerEvent(completed=pb.Completed(text="".join(texts), finish_reason=finish, usage=usage))


class OneBlankAlways(ReadsByHand):
    prefix = "data: "


class LinesOfOneForm(ReadsByHand):
    line_end = "\n\n"


class StopsAtALine(ReadsByHand):
    more: ClassVar[dict[str, object]] = {"stop": ["\n"]}


class Edits(Servicer):
    """Alters the reader's reply."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for event in super().answer(request, context):
            if event.HasField("completed"):
                event.completed.text = self.reply(event.completed.text)
                yield pb.AnswerEvent(text_delta=pb.TextDelta(text=event.completed.text or " "))
                yield event
            elif not event.HasField("text_delta"):
                yield event

    def reply(self, text: str) -> str:
        return text


class ParsesReplies(Edits):
    def reply(self, text: str) -> str:
        try:
            return str(json.loads(text)["answer"])
        except (ValueError, LookupError, TypeError):
            return text


class TakesFencesOff(Edits):
    def reply(self, text: str) -> str:
        return text.removeprefix("```json\n").removesuffix("\n```")


class HoldsWordsBack(Servicer):
    """Sends text only by complete words, which delays the first text."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        pending = ""
        for event in super().answer(request, context):
            pending += event.text_delta.text
            end = len(pending) if event.HasField("completed") else pending.rfind(" ") + 1
            if pending[:end]:
                yield pb.AnswerEvent(text_delta=pb.TextDelta(text=pending[:end]))
                pending = pending[end:]
            if not event.HasField("text_delta"):
                yield event


class EndsAtAFault(Servicer):
    """Treats a fault of the stream as the end of the reply."""

    fault = "the stream broke"

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        texts = []
        try:
            for event in super().answer(request, context):
                texts.append(event.text_delta.text)
                yield event
        except CallError as error:
            if self.fault not in str(error):
                raise
            reply = pb.Completed(text="".join(texts), finish_reason=pb.FINISH_REASON_STOP)
            yield pb.AnswerEvent(completed=reply)


class EndsAtAnError(EndsAtAFault):
    fault = "out of memory"


class ForgetsMaxTokens(Servicer):
    """Fills the window without room for the reply."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        for model in request.search.model_access.models:
            model.context_window_tokens += request.reading.max_tokens
        return super().answer(request, context)


class FirstToken(Servicer):
    """Asks the reader with the token of the first Answer."""

    token = ""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        self.token = self.token or request.search.model_access.token
        request.search.model_access.token = self.token
        return super().answer(request, context)


class SeedsOf32Bits(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        request.reading.seed &= 0xFFFFFFFF
        return super().answer(request, context)


class AsksTwice(Servicer):
    """Calls the reader twice and drops the first reply."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        events = [*super().answer(request, context)]
        del events
        yield from super().answer(request, context)


class LogsTokens(Servicer):
    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Events:
        with (self._engine._store._path.parent / "log").open("a", encoding="utf-8") as log:
            log.write(f"asking {request.search.model_access.base_url} with {request.search.model_access.token}\n")
        return super().answer(request, context)


# ------------------------------------------------------------------ evidence, clocks, health


class PrefersEvidence(SoundMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        evidence_ids = query.evidence.session_ids if query.evidence is not None else ()
        return sorted(super().matches(namespace, query), key=lambda item: not set(item.session_ids) & set(evidence_ids))


class AnswersByEvidence(LetsEvidenceIn):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        request.ClearField("privileged_evidence")
        return super().search(request, context)


class ScoresByTheClock(RankedMemory):
    def matches(self, namespace: str, query: Query) -> list[Item]:
        return [replace(i, score=i.score + time.monotonic() % 1 * 10) for i in super().matches(namespace, query)]


class Flaps(health.HealthServicer):  # type: ignore[misc]  # grpc_health comes without types
    asked = 0

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.asked += 1
        if self.asked % 7 == 0:
            return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
        return super().Check(request, context)


@dataclass(frozen=True)
class Breach:
    """A backend that breaks one clause, the check that must fail, and a part of its message (``says``)."""

    parts: Parts
    check: str
    says: str


BREACHES: dict[str, Breach] = {
    "restart: mojibake": Breach(Parts(memory=Mojibake), "life.again", "after SIGKILL, other items"),
    "restart: items doubled": Breach(Parts(memory=DoubledByRestart), "life.again", "after SIGKILL, other items"),
    "restart: empty days lost": Breach(Parts(store=LosesOnRestart), "life.again", "after SIGKILL"),
    "restart: a character changed": Breach(Parts(memory=VerticalTabsLost), "life.again", "after SIGKILL, other items"),
    "restart: hours lost": Breach(Parts(memory=HoursLost), "life.again", "after SIGKILL, other items"),
    "restart: day 10 before day 2": Breach(Parts(memory=DaysByName), "life.again", "after SIGKILL, other items"),
    "restart: near names in one file": Breach(Parts(memory=NearNamesInOneFile), "life.again", "after SIGKILL"),
    "restart: first day in memory": Breach(Parts(store=FirstDayInMemoryOnly), "life.again", "after SIGKILL"),
    "an index of ASCII": Breach(Parts(memory=AsciiIndex), "life.ingested", "turns in"),
    "text above 64 KiB": Breach(Parts(memory=CutsAt64KiB), "life.ingested", "the end of a text of"),
    "turns of one time": Breach(Parts(memory=OneTurnATime), "life.ingested", "turns of one time"),
    "turns of one speaker and time": Breach(Parts(memory=OneTurnOfASpeakerATime), "life.ingested", "turns of one time"),
    "apostrophes": Breach(Parts(memory=PlainApostrophes), "life.ingested", "text like"),
    "words of many letters": Breach(Parts(memory=ShortWordsAlone), "life.ingested", "a turn of one long word"),
    "the end of very many turns": Breach(
        Parts(memory=FirstOfVeryManyTurns), "life.ingested", "the end of a very long session"
    ),
    "fractions of a second": Breach(Parts(engine=WholeSeconds), "ing.offsets", "which is earlier"),
    "more than 100 turns": Breach(Parts(memory=FirstHundredTurns), "life.ingested", "a turn behind a hundred others"),
    "more than 50 events": Breach(Parts(memory=FirstFiftyEvents), "life.ingested", "an event behind many"),
    "later frames": Breach(Parts(engine=FirstContinuationOnly), "life.ingested", "the middle of a long session"),
    "events of later days": Breach(Parts(memory=EventsOfAllDays), "src.time-travel", "after day"),
    "events of the next day": Breach(Parts(memory=EventsOfTheNextDay), "src.time-travel", "after day"),
    "fifty items at most": Breach(Parts(memory=AtMostFifty), "src.max-items", "50 items are returned"),
    "late events": Breach(Parts(memory=EventsLater), "life.ingested", "left for later"),
    "wrong hour": Breach(Parts(memory=HourOfItsOwn), "life.sources", "has the time"),
    "wrong day": Breach(Parts(memory=NextDay), "life.sources", "has the time"),
    "the event before": Breach(Parts(memory=EventBefore), "life.sources", "of which it holds no word"),
    "neighbour's words": Breach(Parts(memory=NeighboursWords), "life.sources", "holds the turn"),
    "words of a neighbour session": Breach(Parts(memory=NeighbourSessionsWords), "life.sources", "of the session"),
    "every session is a source": Breach(Parts(memory=EverySession), "life.sources", "holds no word of"),
    "a later name": Breach(Parts(memory=LaterName), "life.sources", "a name of no participant"),
    "wrong speaker": Breach(Parts(memory=WrongSpeaker), "life.sources", "the speaker is"),
    "a speaker by id": Breach(Parts(memory=SpeakerById), "life.sources", "by the id"),
    "turn ids without case": Breach(Parts(memory=TurnIdsFolded), "life.sources", "of which it holds no word"),
    "session ids without case": Breach(Parts(memory=SessionIdsFolded), "life.sources", "holds no word of"),
    "batch ids without case": Breach(Parts(store=BatchIdsFolded), "life.ingested", "is refused as known"),
    "batch ids of all": Breach(Parts(store=BatchIdsOfAll), "life.ingested", "is refused as known"),
    "empty days unchecked": Breach(Parts(engine=EmptyDaysUnchecked), "ing.empty-day", "digest of zeros"),
    "refused days on disk": Breach(Parts(engine=RefusedDaysOnDisk), "hlt.restart", "a restart says visible_through"),
    "all items or none": Breach(Parts(memory=AllOrNothing), "src.max-context-tokens", "0 items are returned"),
    "small letters": Breach(Parts(memory=SmallLetters), "src.finds", "is returned in other words"),
    "long texts without source": Breach(Parts(memory=LongTextsWithoutSource), "life.prompts", "names no session"),
    "no room for the reply": Breach(Parts(servicer=ForgetsMaxTokens), "ans.window", "max_tokens is"),
    "the token of another call": Breach(
        Parts(servicer=FirstToken), "ans.events", "this token belonged to has returned"
    ),
    "Reset of the last day": Breach(Parts(store=ResetsTheLastDay), "life.again", "that was reset"),
    "Reset without case": Breach(
        Parts(store=ResetsWithoutCase), "life.again", "SIGKILL, was refused: Search: NOT_FOUND"
    ),
    "Forget by a wild card": Breach(Parts(engine=ForgetsByPattern), "life.forget", "it went with the subject"),
    "Forget by an expression": Breach(Parts(engine=ForgetsByRegularExpression), "life.forget", "belongs to"),
    "Forget by first name": Breach(Parts(engine=ForgetsByFirstName), "life.forget", "it went with the subject"),
    "Forget without case": Breach(Parts(engine=ForgetFoldsCase), "life.forget", "it went with the fact_text"),
    "Forget of sessions": Breach(Parts(engine=ForgetsSessions), "life.forget", "in the turn before and not in this"),
    "Forget for good": Breach(Parts(engine=ForgetForGood), "life.forget", "by an Ingest after its Forget"),
    "Forget leaves statistics": Breach(Parts(memory=ForgetsButCounts), "life.forget", "statistics"),
    "prompt of the first item": Breach(Parts(servicer=PromptOfTheFirst), "life.prompts", "has room and lacks"),
    "prompt of long items cut": Breach(Parts(servicer=PromptOfBeginnings), "life.prompts", "has room and lacks"),
    "prompt of another namespace": Breach(Parts(servicer=PromptOfAnother), "life.at-once", "the prompt"),
    "the owner asks": Breach(Parts(servicer=OwnerAsks), "life.prompts", "asks"),
    "a relation without a name": Breach(Parts(servicer=RelationsWithoutNames), "life.prompts", "without the name"),
    "owner and stranger mixed up": Breach(Parts(servicer=OwnerAndStrangerMixed), "life.prompts", "asks"),
    "one blank after data": Breach(Parts(servicer=OneBlankAlways), "ans.unaltered", "a stream that writes"),
    "one line an event": Breach(Parts(servicer=LinesOfOneForm), "ans.unaltered", "a stream that writes"),
    "one data line an event": Breach(Parts(servicer=ReadsByHand), "ans.unaltered", '1,\\ndata: "b": 2'),
    "an event that is no JSON": Breach(Parts(servicer=EndsAtAFault), "ans.model-errors", "no JSON"),
    "an error amid the stream": Breach(Parts(servicer=EndsAtAnError), "ans.model-errors", "with an error"),
    "stops at a line": Breach(Parts(servicer=StopsAtALine), "ans.sampling", "to stop at"),
    "a parsed reply": Breach(Parts(servicer=ParsesReplies), "ans.unaltered", "a JSON object"),
    "a fence taken off": Breach(Parts(servicer=TakesFencesOff), "ans.unaltered", "within a code fence"),
    "words held back": Breach(Parts(servicer=HoldsWordsBack), "ans.streams", "no text_delta came"),
    "seeds of 32 bits": Breach(Parts(servicer=SeedsOf32Bits), "ans.sampling", "seed"),
    "tokens in the log": Breach(Parts(servicer=LogsTokens), "sec.log", "tokens of the model access"),
    "evidence": Breach(Parts(memory=PrefersEvidence, servicer=LetsEvidenceIn), "evd.competitor", "Search"),
    "evidence in Answer": Breach(Parts(memory=PrefersEvidence, servicer=AnswersByEvidence), "evd.competitor", "Answer"),
    "health that flaps": Breach(Parts(health=Flaps), "hlt.after-errors", "NOT_SERVING"),
    "a clock in the scores": Breach(Parts(memory=ScoresByTheClock), "src.repeatable", "returns other scores"),
    "two calls of the reader": Breach(Parts(servicer=AsksTwice), "ans.streams", "asked 2 times"),
}
"""Breaches by the name of their kind, which is the id of the test."""
