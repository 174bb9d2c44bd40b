"""Assembles the frames of an Ingest into one day, and checks their order, fields, limits, counts and digest.

A day is sent as a stream of frames: its header, sessions (a long session in several frames), events, and a trailer with
counts and digest. The day store keeps the frames, and its days are assembled here again.
"""

from __future__ import annotations

from dataclasses import dataclass

from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_BYTES, DIGEST_VERSION, DayDigest, FrameError

from memarena_backend.checks import (
    check_id,
    check_required_text,
    check_text,
    parse_date,
    parse_moment,
)
from memarena_backend.errors import data_loss, invalid_argument
from memarena_backend.limits import TURN_TEXT_BYTES
from memarena_backend.records import Day, Event, Participant, Role, Session, Turn

_ROLES = {
    pb.PARTICIPANT_ROLE_OWNER: Role.OWNER,
    pb.PARTICIPANT_ROLE_PERSON: Role.PERSON,
    pb.PARTICIPANT_ROLE_ASSISTANT: Role.ASSISTANT,
}


@dataclass(frozen=True, slots=True)
class ReceivedDay:
    """A complete, checked day. ``frames`` are its serialised header, sessions and events, without model access."""

    namespace: str
    batch_id: str
    digest: bytes
    day: Day
    frames: tuple[bytes, ...]


@dataclass(slots=True)
class _Draft:
    """A session that the next frame may still continue."""

    opening: Session
    speakers: dict[str, Participant]
    turns: list[Turn]

    def done(self) -> Session:
        head = self.opening
        return Session(
            head.session_id,
            head.participants,
            head.started_at,
            head.ended_at,
            head.modality,
            head.place,
            head.group,
            tuple(self.turns),
        )


class DayAssembler:
    """Assembles a day from its frames, added in wire order; :meth:`finish` returns it after the last one.

    Every method raises CallError: INVALID_ARGUMENT with the field at fault, RESOURCE_EXHAUSTED for a size above a
    limit, DATA_LOSS for counts or a digest that differ.
    """

    def __init__(self, max_turn_text_bytes: int | None = None) -> None:
        self._text_limit = max_turn_text_bytes or TURN_TEXT_BYTES
        self._digest = DayDigest()
        self._header: pb.DayHeader | None = None
        self._trailer: pb.DayTrailer | None = None
        self._day_head: Day | None = None
        self._draft: _Draft | None = None
        self._sessions: list[Session] = []
        self._events: list[Event] = []
        self._turn_ids: set[str] = set()
        self._event_ids: set[str] = set()
        self._frames: list[bytes] = []

    def add(self, frame: pb.IngestRequest) -> None:
        """Add the next frame."""
        try:
            self._digest.add(frame)
        except FrameError as error:
            raise invalid_argument(error.field, str(error).removeprefix(f"{error.field}: ")) from error
        match frame.WhichOneof("frame"):
            case "header":
                self._take_header(frame.header)
            case "session":
                self._take_session(frame.session)
                self._frames.append(frame.SerializeToString())
            case "event":
                self._take_event(frame.event)
                self._frames.append(frame.SerializeToString())
            case "trailer":
                self._trailer = frame.trailer

    def finish(self) -> ReceivedDay:
        """Return the day. Raises CallError if header or trailer is missing, or the trailer does not match."""
        if self._header is None or self._day_head is None:
            raise invalid_argument("header", "the stream ended without a header")
        if self._trailer is None:
            raise invalid_argument("trailer", "the stream ended without a trailer; nothing of the day was kept")
        self._check_trailer(self._trailer)
        return self._received(self._trailer.digest)

    def finish_stored(self, digest: bytes) -> ReceivedDay:
        """Return a day whose frames come from the day store, checked against its stored digest."""
        if self._digest.digest() != digest:
            raise data_loss("a stored day does not match its digest")
        return self._received(digest)

    # -------------------------------------------------------------- header

    def _take_header(self, header: pb.DayHeader) -> None:
        check_id("header.namespace", header.namespace)
        check_id("header.batch_id", header.batch_id)
        if not header.HasField("owner"):
            raise invalid_argument("header.owner", "is required")
        owner = self._participant("header.owner", header.owner)
        if owner.role is not Role.OWNER:
            raise invalid_argument("header.owner.role", "expected PARTICIPANT_ROLE_OWNER")
        self._day_head = Day(header.day_index, parse_date("header.date", header.date), owner, (), ())
        self._header = pb.DayHeader()
        self._header.CopyFrom(header)
        # The token in model_access is valid for this call only, so it is not stored with the day.
        self._header.ClearField("model_access")
        self._frames.append(pb.IngestRequest(header=self._header).SerializeToString())

    def _participant(self, field: str, participant: pb.Participant) -> Participant:
        role = _ROLES.get(participant.role)
        if role is None:
            raise invalid_argument(f"{field}.role", "expected OWNER, PERSON or ASSISTANT")
        return Participant(
            check_id(f"{field}.participant_id", participant.participant_id),
            check_required_text(f"{field}.display_name", participant.display_name),
            role,
        )

    # -------------------------------------------------------------- sessions

    def _take_session(self, session: pb.Session) -> None:
        if not session.continuation:
            self._close_draft()
            self._draft = self._open(session)
        draft = self._draft
        assert draft is not None  # DayDigest refuses a continuation without its session
        for position, turn in enumerate(session.turns):
            draft.turns.append(self._turn(f"session.turns[{position}]", turn, draft.speakers))

    def _open(self, session: pb.Session) -> _Draft:
        check_id("session.session_id", session.session_id)
        if not session.participants:
            raise invalid_argument("session.participants", "the opening frame of a session names its participants")
        speakers: dict[str, Participant] = {}
        for position, proto in enumerate(session.participants):
            participant = self._participant(f"session.participants[{position}]", proto)
            if participant.participant_id in speakers:
                raise invalid_argument(f"session.participants[{position}].participant_id", "occurs twice")
            speakers[participant.participant_id] = participant
        started_at = parse_moment("session.started_at", session.started_at)
        ended_at = parse_moment("session.ended_at", session.ended_at)
        if ended_at < started_at:
            raise invalid_argument("session.ended_at", "is before started_at")
        opening = Session(
            session.session_id,
            tuple(speakers.values()),
            started_at,
            ended_at,
            check_text("session.modality", session.modality),
            check_text("session.place", session.place),
            check_text("session.group", session.group),
            (),
        )
        return _Draft(opening, speakers, [])

    def _turn(self, field: str, turn: pb.Turn, speakers: dict[str, Participant]) -> Turn:
        turn_id = check_id(f"{field}.turn_id", turn.turn_id)
        if turn_id in self._turn_ids:
            raise invalid_argument(f"{field}.turn_id", f"{turn_id!r} occurs twice in this day")
        self._turn_ids.add(turn_id)
        speaker = speakers.get(turn.speaker_id)
        if speaker is None:
            check_id(f"{field}.speaker_id", turn.speaker_id)
            raise invalid_argument(f"{field}.speaker_id", f"{turn.speaker_id!r} is not among the participants")
        text = check_text(f"{field}.text", turn.text, self._text_limit)
        return Turn(turn_id, speaker, text, parse_moment(f"{field}.said_at", turn.said_at))

    def _close_draft(self) -> None:
        if self._draft is not None:
            self._sessions.append(self._draft.done())
            self._draft = None

    # -------------------------------------------------------------- events and trailer

    def _take_event(self, event: pb.Event) -> None:
        event_id = check_id("event.event_id", event.event_id)
        if event_id in self._event_ids:
            raise invalid_argument("event.event_id", f"{event_id!r} occurs twice in this day")
        self._event_ids.add(event_id)
        self._events.append(
            Event(
                event_id,
                parse_moment("event.happened_at", event.happened_at),
                check_required_text("event.text", event.text, self._text_limit),
                check_text("event.category", event.category),
            )
        )

    def _check_trailer(self, trailer: pb.DayTrailer) -> None:
        if trailer.digest_version != DIGEST_VERSION:
            raise invalid_argument("trailer.digest_version", f"expected {DIGEST_VERSION}, got {trailer.digest_version}")
        if len(trailer.digest) != DIGEST_BYTES:
            raise invalid_argument("trailer.digest", f"expected {DIGEST_BYTES} bytes, got {len(trailer.digest)}")
        for field, stated, arrived in (
            ("session_count", trailer.session_count, self._digest.session_count),
            ("turn_count", trailer.turn_count, self._digest.turn_count),
            ("event_count", trailer.event_count, self._digest.event_count),
        ):
            if stated != arrived:
                raise data_loss(f"says {stated}, but {arrived} arrived", f"trailer.{field}")
        computed = self._digest.digest()
        if computed != trailer.digest:
            raise data_loss(f"{trailer.digest.hex()}, but the day that arrived has {computed.hex()}", "trailer.digest")

    def _received(self, digest: bytes) -> ReceivedDay:
        self._close_draft()
        assert self._header is not None
        assert self._day_head is not None
        head = self._day_head
        day = Day(head.index, head.date, head.owner, tuple(self._sessions), tuple(self._events))
        return ReceivedDay(self._header.namespace, self._header.batch_id, digest, day, tuple(self._frames))
