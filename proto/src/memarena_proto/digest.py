"""Computes the digest of a day: SHA-256 over a language-neutral encoding of its frames (SPEC.md, DIG).

Both sides use it: the sender to fill the trailer, the receiver to check it. The encoding is not protobuf's own, whose
bytes are not canonical. It is made of three things only:

- a string is its UTF-8 as sent, preceded by its length in bytes as 4 bytes big-endian;
- an integer (an enum's number included) is its decimal ASCII, encoded as a string;
- an absent field is the length 0xFFFFFFFF and nothing after it.

A list is its count as an integer, then its elements. The table of DIG-6 has the fields and their order; every function
below implements one block of it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator

from . import memory_backend_pb2 as pb

DIGEST_VERSION = 1
"""Number of the table that this module implements, as sent in ``DayTrailer.digest_version``."""

DIGEST_BYTES = 32
"""Length of a digest in bytes."""

_ABSENT = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct(">I")


class FrameError(ValueError):
    """The frames of a day do not follow the order that SPEC.md (ING-2 to ING-4) asks for.

    Attributes:
        field: the field at fault, from ``IngestRequest`` down, for example ``session.continuation``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class DayDigest:
    """Takes the frames of one day in wire order and yields counts, digest and trailer.

    It holds the encoded day in memory, because a list begins with its count and a sender need not know it in advance.
    Values are not judged: a day with an empty REQUIRED string has a digest like any other.
    """

    def __init__(self) -> None:
        self.session_count = 0
        self.turn_count = 0
        self.event_count = 0
        self._header: bytes | None = None
        self._sessions: list[bytes] = []
        self._open: _OpenSession | None = None
        self._seen: set[str] = set()
        self._events: list[bytes] = []
        self._closed = False

    def add(self, frame: pb.IngestRequest) -> None:
        """Take the next frame. The trailer closes the day and is itself no part of the digest.

        Raises:
            FrameError: the frame cannot stand here. The day is then of no further use.
        """
        kind = frame.WhichOneof("frame")
        if kind is None:
            raise FrameError("frame", "an empty frame; expected a header, session, event or trailer")
        if self._closed:
            raise FrameError(kind, "a frame after the trailer; the trailer must be the last")
        if kind == "header":
            self._add_header(frame.header)
        elif self._header is None:
            raise FrameError("header", f"the first frame is a {kind}; a header must come first")
        elif kind == "session":
            self._add_session(frame.session)
        elif kind == "event":
            self._add_event(frame.event)
        else:
            self._closed = True

    def digest(self) -> bytes:
        """Return the digest of the frames so far, 32 bytes.

        Raises:
            FrameError: there was no header.
        """
        digest = hashlib.sha256()
        for part in self._parts():
            digest.update(part)
        return digest.digest()

    def encoded(self) -> bytes:
        """Return the bytes that are hashed, for test vectors and to find out why two sides differ."""
        return b"".join(self._parts())

    def trailer(self) -> pb.DayTrailer:
        """Return the trailer that closes the day of the frames so far."""
        return pb.DayTrailer(
            session_count=self.session_count,
            turn_count=self.turn_count,
            event_count=self.event_count,
            digest_version=DIGEST_VERSION,
            digest=self.digest(),
        )

    def _parts(self) -> Iterator[bytes]:
        if self._header is None:
            raise FrameError("header", "no header yet; a day begins with one")
        yield self._header
        yield _integer(self.session_count)
        yield from self._sessions
        if self._open is not None:
            yield self._open.encoded()
        yield _integer(self.event_count)
        yield from self._events

    def _add_header(self, header: pb.DayHeader) -> None:
        if self._header is not None:
            raise FrameError("header", "a second header; a day has exactly one")
        self._header = _encode_header(header)

    def _add_session(self, session: pb.Session) -> None:
        if self.event_count:
            raise FrameError("session", "a session after an event; all sessions come before the first event")
        if session.continuation:
            self._continue_session(session)
        else:
            self._open_session(session)
        self.turn_count += len(session.turns)

    def _open_session(self, session: pb.Session) -> None:
        if session.session_id in self._seen:
            raise FrameError("session.session_id", f"{session.session_id!r} was opened before in this day")
        self._seen.add(session.session_id)
        self._close_session()
        self._open = _OpenSession(session)
        self.session_count += 1

    def _continue_session(self, session: pb.Session) -> None:
        if self._open is None or self._open.session_id != session.session_id:
            raise FrameError(
                "session.continuation",
                f"{session.session_id!r} is not the session before it; the frames of a session are consecutive",
            )
        allowed = ("session_id", "continuation", "turns")
        extra = [field.name for field, _ in session.ListFields() if field.name not in allowed]
        if extra:
            raise FrameError(f"session.{extra[0]}", "set in a continuation; a continuation carries nothing but turns")
        self._open.add_turns(session.turns)

    def _add_event(self, event: pb.Event) -> None:
        self._close_session()
        self._events.append(_encode_event(event))
        self.event_count += 1

    def _close_session(self) -> None:
        if self._open is not None:
            self._sessions.append(self._open.encoded())
            self._open = None


class _OpenSession:
    """The session that the next frame may still continue, with its turns encoded one by one."""

    def __init__(self, session: pb.Session) -> None:
        self.session_id = session.session_id
        self._head = _encode_session_head(session)
        self._turns: list[bytes] = []
        self.add_turns(session.turns)

    def add_turns(self, turns: Iterable[pb.Turn]) -> None:
        self._turns.extend(map(_encode_turn, turns))

    def encoded(self) -> bytes:
        return b"".join((self._head, _integer(len(self._turns)), *self._turns))


def day_digest(header: pb.DayHeader, sessions: Iterable[pb.Session], events: Iterable[pb.Event]) -> bytes:
    """Return the digest of a day, 32 bytes. Sessions may be whole or split over consecutive continuation frames.

    Raises:
        FrameError: a continuation does not follow its session, or a session id is opened twice.
    """
    day = DayDigest()
    day.add(pb.IngestRequest(header=header))
    for session in sessions:
        day.add(pb.IngestRequest(session=session))
    for event in events:
        day.add(pb.IngestRequest(event=event))
    return day.digest()


def _encode_header(header: pb.DayHeader) -> bytes:
    owner = _encode_participant(header.owner) if header.HasField("owner") else _ABSENT
    return b"".join(
        (_text(header.namespace), _integer(header.day_index), _text(header.date), _text(header.batch_id), owner)
    )


def _encode_participant(participant: pb.Participant) -> bytes:
    return _text(participant.participant_id) + _text(participant.display_name) + _integer(participant.role)


def _encode_session_head(session: pb.Session) -> bytes:
    return b"".join(
        (
            _text(session.session_id),
            _integer(len(session.participants)),
            *map(_encode_participant, session.participants),
            _text(session.started_at),
            _text(session.ended_at),
            _optional(session.modality),
            _optional(session.place),
            _optional(session.group),
        )
    )


def _encode_turn(turn: pb.Turn) -> bytes:
    return _text(turn.turn_id) + _text(turn.speaker_id) + _optional(turn.text) + _text(turn.said_at)


def _encode_event(event: pb.Event) -> bytes:
    return _text(event.event_id) + _text(event.happened_at) + _text(event.text) + _optional(event.category)


def _text(value: str) -> bytes:
    data = value.encode("utf-8")
    return _LENGTH.pack(len(data)) + data


def _optional(value: str) -> bytes:
    return _text(value) if value else _ABSENT


def _integer(value: int) -> bytes:
    return _text(str(value))
