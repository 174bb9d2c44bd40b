"""Defines the common mistakes in computing the digest as encodings, so that a check can name a backend's mistake.

A backend does not report what it hashed. But it accepts a day whose trailer has the digest of a wrong encoding if it
makes the same mistake. Used by dig.gate.
"""

from __future__ import annotations

import hashlib
import struct
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from memarena_proto import memory_backend_pb2 as pb

_ABSENT = b"\xff\xff\xff\xff"
_ROLES: dict[int, str] = {number: name for name, number in pb.ParticipantRole.items()}

T = TypeVar("T", pb.Session, pb.Turn, pb.Event)


@dataclass(frozen=True)
class Encoding:
    """How a day is encoded. The defaults are table 1 of SPEC.md (DIG); each other value is a mistake."""

    length: str = ">I"
    """``struct`` format of a length."""
    length_of: Callable[[str], int] = lambda text: len(text.encode())
    text: Callable[[str], str] = str
    absent: bytes = _ABSENT
    integer: Callable[[int], bytes] = lambda value: _ascii(str(value))
    day_index: Callable[[int], bytes] | None = None
    """Encoding of the day index; None: that of other integers."""
    counts: bool = True  # whether a list begins with its length
    role: Callable[[Encoding, int], bytes] = lambda encoding, role: encoding.integer(role)  # gets the encoding
    merged: bool = True
    """Whether the frames of a split session are one session."""
    optional: tuple[str, ...] = ("modality", "place", "group")
    """Optional fields of a session, in their order."""
    empty: str = ""
    """The optional field that is encoded as an empty string where it is absent; empty: none."""
    sessions_by: str = ""
    turns_by: str = ""
    events_by: str = ""
    """``sessions_by``, ``turns_by``, ``events_by``: field by which each is sorted; empty: the order of the wire."""

    def day(self, frames: Sequence[pb.IngestRequest]) -> bytes:
        """Return the encoded day."""
        head = next(frame.header for frame in frames if frame.HasField("header"))
        sessions = _ordered(self._sessions(frames), self.sessions_by)
        events = _ordered([frame.event for frame in frames if frame.HasField("event")], self.events_by)
        return b"".join(
            (
                self._text(head.namespace),
                (self.day_index or self.integer)(head.day_index),
                self._text(head.date),
                self._text(head.batch_id),
                self._participant(head.owner),
                self._list([self._session(session) for session in sessions]),
                self._list([self._event(event) for event in events]),
            )
        )

    def digest(self, frames: Sequence[pb.IngestRequest]) -> bytes:
        """Return the SHA-256 of the encoded day."""
        return hashlib.sha256(self.day(frames)).digest()

    def _sessions(self, frames: Iterable[pb.IngestRequest]) -> list[pb.Session]:
        returned: list[pb.Session] = []
        for frame in frames:
            if not frame.HasField("session"):
                continue
            if self.merged and frame.session.continuation:
                returned[-1].turns.extend(frame.session.turns)
            else:
                copy = pb.Session()
                copy.CopyFrom(frame.session)
                returned.append(copy)
        return returned

    def _session(self, session: pb.Session) -> bytes:
        turns = _ordered(list(session.turns), self.turns_by)
        return b"".join(
            (
                self._text(session.session_id),
                self._list([self._participant(each) for each in session.participants]),
                self._text(session.started_at),
                self._text(session.ended_at),
                *(self._optional(getattr(session, each), empty=each == self.empty) for each in self.optional),
                self._list([self._turn(turn) for turn in turns]),
            )
        )

    def _turn(self, turn: pb.Turn) -> bytes:
        who = self._text(turn.turn_id) + self._text(turn.speaker_id)
        return who + self._optional(turn.text) + self._text(turn.said_at)

    def _event(self, event: pb.Event) -> bytes:
        known = self._text(event.event_id) + self._text(event.happened_at) + self._text(event.text)
        return known + self._optional(event.category)

    def _participant(self, participant: pb.Participant) -> bytes:
        named = self._text(participant.participant_id) + self._text(participant.display_name)
        return named + self.role(self, participant.role)

    def _list(self, elements: Sequence[bytes]) -> bytes:
        return (self.integer(len(elements)) if self.counts else b"") + b"".join(elements)

    def _text(self, text: str) -> bytes:
        sent = self.text(text)
        return struct.pack(self.length, self.length_of(sent)) + sent.encode()

    def _optional(self, text: str, *, empty: bool = False) -> bytes:
        return self._text(text) if text or empty else self.absent


def _ascii(text: str) -> bytes:
    return struct.pack(">I", len(text)) + text.encode()


def _ordered(elements: list[T], by: str) -> list[T]:
    return sorted(elements, key=attrgetter(by)) if by else elements


TABLE_1 = Encoding()

FAULTS: dict[str, Encoding] = {
    "day_index 0 is an empty string (DIG-3)": Encoding(day_index=lambda value: _ascii(str(value or ""))),
    "day_index 0 is absent (DIG-3)": Encoding(day_index=lambda n: _ascii(str(n)) if n else _ABSENT),
    "0 is an empty string (DIG-3)": Encoding(integer=lambda value: _ascii(str(value or ""))),
    "absent optional fields are encoded as empty strings (DIG-4)": Encoding(absent=bytes(4)),
    "absent optional fields are left out (DIG-4)": Encoding(absent=b""),
    "an absent modality is an empty string (DIG-4)": Encoding(empty="modality"),
    "an absent place is an empty string (DIG-4)": Encoding(empty="place"),
    "an absent group is an empty string (DIG-4)": Encoding(empty="group"),
    "place and group are swapped (DIG-6)": Encoding(optional=("modality", "group", "place")),
    "lengths are little-endian (DIG-2)": Encoding(length="<I"),
    "lengths have 8 bytes (DIG-2)": Encoding(length=">Q"),
    "lengths count characters, not bytes (DIG-2)": Encoding(length_of=len),
    "lengths count UTF-16 units, not bytes (DIG-2)": Encoding(length_of=lambda t: len(t.encode("utf-16-le")) // 2),
    "text is normalised to NFC (DIG-2)": Encoding(text=lambda text: unicodedata.normalize("NFC", text)),
    "text is normalised to NFKC (DIG-2)": Encoding(text=lambda text: unicodedata.normalize("NFKC", text)),
    "text is trimmed (DIG-2)": Encoding(text=str.strip),
    "integers are 4 bytes, big-endian (DIG-3)": Encoding(integer=lambda value: struct.pack(">I", value)),
    "integers are decimal ASCII without a length (DIG-3)": Encoding(integer=lambda value: str(value).encode()),
    "day_index is 4 bytes, big-endian (DIG-3)": Encoding(day_index=lambda value: struct.pack(">I", value)),
    "day_index is 8 bytes, big-endian (DIG-3)": Encoding(day_index=lambda value: struct.pack(">Q", value)),
    "day_index is a signed number of 32 bits (DIG-3)": Encoding(
        day_index=lambda value: _ascii(str((value + 2**31) % 2**32 - 2**31))
    ),
    "day_index has leading zeros (DIG-3)": Encoding(day_index=lambda value: _ascii(f"{value:02}")),
    "enums are encoded by name (DIG-3)": Encoding(role=lambda _, role: _ascii(_ROLES.get(role, ""))),
    "roles are left out (DIG-6)": Encoding(role=lambda _, role: b""),
    "lists have no count (DIG-5)": Encoding(counts=False),
    "each frame of a split session counts as a session (DIG-5)": Encoding(merged=False),
    "sessions are sorted by id, not in the order of the wire (DIG-5)": Encoding(sessions_by="session_id"),
    "sessions are sorted by start, not in the order of the wire (DIG-5)": Encoding(sessions_by="started_at"),
    "turns are sorted by id, not in the order of the wire (DIG-5)": Encoding(turns_by="turn_id"),
    "turns are sorted by time, not in the order of the wire (DIG-5)": Encoding(turns_by="said_at"),
    "events are sorted by id, not in the order of the wire (DIG-5)": Encoding(events_by="event_id"),
    "events are sorted by time, not in the order of the wire (DIG-5)": Encoding(events_by="happened_at"),
}
"""Known mistakes, by the text with which they are reported."""


def first_difference(right: bytes, wrong: bytes) -> int:
    """Return the index of the first byte that differs; the shorter length if one is a prefix of the other."""
    return next((n for n, (a, b) in enumerate(zip(right, wrong, strict=False)) if a != b), min(len(right), len(wrong)))
