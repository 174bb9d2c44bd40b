"""Builds days to send: made-up facts, sessions with them, and the matching trailer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from google.protobuf.message import Message
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DayDigest, FrameError

OWNER = pb.Participant(participant_id="p0", display_name="Maya Chen", role=pb.PARTICIPANT_ROLE_OWNER)
FRIEND = pb.Participant(participant_id="p1", display_name="Omar Haddad", role=pb.PARTICIPANT_ROLE_PERSON)
AIDE = pb.Participant(participant_id="p2", display_name="Aide", role=pb.PARTICIPANT_ROLE_ASSISTANT)

_BEGIN = datetime(2025, 1, 1, 9, tzinfo=UTC)
_LAST_DATED_DAY = 100_000
"""Days above this index share one date, since the calendar ends before the day indices do."""

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Fact:
    """A statement that is ingested once, and its question. ``value`` is a made-up word that occurs nowhere else."""

    statement: str
    question: str
    value: str


def moment(day: int, minute: int = 0) -> str:
    """Return a time of a simulated day, RFC 3339. Day 0 is 2025-01-01; minute 0 is nine o'clock."""
    return (_BEGIN + timedelta(days=min(day, _LAST_DATED_DAY), minutes=minute)).isoformat()


def session(session_id: str, texts: Sequence[str], *, day: int = 0, minute: int = 0) -> pb.Session:
    """Return a session in which the owner says each text, one a minute. Turn ids are the session's id with a number."""
    turns = [
        pb.Turn(
            turn_id=f"{session_id}-{number}",
            speaker_id=OWNER.participant_id,
            text=text,
            said_at=moment(day, minute + number),
        )
        for number, text in enumerate(texts)
    ]
    return pb.Session(
        session_id=session_id,
        participants=[OWNER, FRIEND],
        started_at=moment(day, minute),
        ended_at=moment(day, minute + max(1, len(texts))),
        turns=turns,
    )


def split(whole: pb.Session, step: int) -> list[pb.Session]:
    """Split a session into frames: ``step`` turns in the first, and twice as many in each next, up to 1,000."""
    frames, begin = [], 0
    while begin < max(len(whole.turns), 1):
        part = pb.Session(session_id=whole.session_id, continuation=begin > 0, turns=whole.turns[begin : begin + step])
        if not begin:
            part.CopyFrom(whole)
            del part.turns[step:]
        frames.append(part)
        begin, step = begin + step, min(step * 2, 1_000)
    return frames


def event(event_id: str, text: str, day: int = 0) -> pb.Event:
    """Return an event at noon, which is 180 minutes after nine o'clock."""
    return pb.Event(event_id=event_id, happened_at=moment(day, 180), text=text)


def header(namespace: str, day: int, batch_id: str) -> pb.DayHeader:
    """Return the header of a day."""
    return pb.DayHeader(namespace=namespace, day_index=day, date=moment(day)[:10], batch_id=batch_id, owner=OWNER)


def frames(
    head: pb.DayHeader, sessions: Iterable[pb.Session] = (), events: Iterable[pb.Event] = ()
) -> list[pb.IngestRequest]:
    """Return the frames of a day without its trailer."""
    return [
        pb.IngestRequest(header=head),
        *(pb.IngestRequest(session=each) for each in sessions),
        *(pb.IngestRequest(event=each) for each in events),
    ]


def trailer(day: Iterable[pb.IngestRequest]) -> pb.IngestRequest:
    """Return the trailer of these frames; if their order is invalid, that of the frames before the first error."""
    digest = DayDigest()
    for frame in day:
        try:
            digest.add(frame)
        except FrameError:
            break
    try:
        return pb.IngestRequest(trailer=digest.trailer())
    except FrameError:
        return pb.IngestRequest(trailer=pb.DayTrailer(digest_version=1, digest=bytes(32)))


def sealed(day: Iterable[pb.IngestRequest]) -> list[pb.IngestRequest]:
    """Return the frames with their matching trailer."""
    whole = list(day)
    return [*whole, trailer(whole)]


def edited(message: M, path: str, value: object = None) -> M:
    """Return a copy with another value in the field at ``path`` (names of the proto file); None clears the field.
    Of a repeated message the last is edited. If ``value`` is a function, it is applied to the present value.
    """
    copy = type(message)()
    copy.CopyFrom(message)
    *parents, name = path.split(".")
    part: Any = copy
    for parent in parents:
        inner = getattr(part, parent)
        part = inner if isinstance(inner, Message) else inner[-1]
    if callable(value):
        value = value(getattr(part, name))
    if value is None or isinstance(value, (Message, list)):
        part.ClearField(name)
        part.MergeFrom(type(part)(**{name: value}))
    else:
        setattr(part, name, value)
    return copy


def edited_day(
    day: Sequence[pb.IngestRequest], path: str, value: object = None, *, seal: bool = True
) -> list[pb.IngestRequest]:
    """Return a day with one field edited (``session.turns.text``); ``seal``: with a matching trailer, not the old."""
    kind = path.partition(".")[0]
    # The stubs of HasField know the literal names of fields alone.
    whole = [edited(frame, path, value) if frame.HasField(kind) else frame for frame in day]  # type: ignore[arg-type]
    return sealed(whole[:-1]) if seal else whole
