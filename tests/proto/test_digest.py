"""Tests the digest of a day: its properties, and the fields in its table.

The digest is a hash over all that a backend must keep of a day; both sides compute it, so a field that it left out
could be lost unnoticed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_VERSION, DayDigest, FrameError, day_digest

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
WORD = st.text("abcdefgh0123456789-", min_size=1, max_size=6)
PARTICIPANT = st.builds(pb.Participant, participant_id=WORD, display_name=TEXT, role=st.integers(0, 3))
TURN = st.builds(pb.Turn, turn_id=WORD, speaker_id=WORD, text=TEXT, said_at=WORD)
SESSION = st.builds(
    pb.Session,
    session_id=WORD,
    participants=st.lists(PARTICIPANT, max_size=3),
    started_at=WORD,
    ended_at=WORD,
    modality=TEXT,
    place=TEXT,
    group=TEXT,
    turns=st.lists(TURN, max_size=6),
)
SESSIONS = st.lists(SESSION, max_size=4, unique_by=lambda session: session.session_id)
EVENT = st.builds(pb.Event, event_id=WORD, happened_at=WORD, text=TEXT, category=TEXT)
HEADER = st.builds(
    pb.DayHeader,
    namespace=WORD,
    day_index=st.integers(0, 2**32 - 1),
    date=WORD,
    batch_id=WORD,
    owner=PARTICIPANT,
)


def a_day() -> tuple[pb.DayHeader, pb.Session, pb.Event]:
    """A day in which every listed field has a value of its own."""
    owner = pb.Participant(participant_id="p-1", display_name="Maya", role=pb.PARTICIPANT_ROLE_OWNER)
    other = pb.Participant(participant_id="p-2", display_name="Tom", role=pb.PARTICIPANT_ROLE_PERSON)
    header = pb.DayHeader(namespace="n", day_index=4, date="2025-01-05", batch_id="b", owner=owner)
    session = pb.Session(
        session_id="s",
        participants=[owner, other],
        started_at="t1",
        ended_at="t2",
        modality="face_to_face",
        place="Quay",
        group="Hikers",
        turns=[
            pb.Turn(turn_id="u1", speaker_id="p-1", text="one", said_at="t3"),
            pb.Turn(turn_id="u2", speaker_id="p-2", text="two", said_at="t4"),
        ],
    )
    return header, session, pb.Event(event_id="e", happened_at="t5", text="rain", category="global")


def split(session: pb.Session, cuts: list[int]) -> Iterator[pb.Session]:
    """The session as an opening frame and continuations, cut before the turns with the given indices."""
    bounds = [0, *sorted(cut % (len(session.turns) + 1) for cut in cuts), len(session.turns)]
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        if number == 0:
            opening = pb.Session()
            opening.CopyFrom(session)
            del opening.turns[:]
            opening.turns.extend(session.turns[start:end])
            yield opening
        else:
            yield pb.Session(session_id=session.session_id, continuation=True, turns=session.turns[start:end])


@given(
    header=HEADER, sessions=SESSIONS, events=st.lists(EVENT, max_size=3), cuts=st.lists(st.integers(0, 9), max_size=4)
)
def test_splitting_sessions_over_frames_does_not_change_the_digest(
    header: pb.DayHeader, sessions: list[pb.Session], events: list[pb.Event], cuts: list[int]
) -> None:
    frames = [frame for session in sessions for frame in split(session, cuts)]
    assert len(frames) == len(sessions) * (len(cuts) + 1)
    assert day_digest(header, frames, events) == day_digest(header, sessions, events)


@given(header=HEADER, sessions=SESSIONS, events=st.lists(EVENT, max_size=3))
def test_a_day_that_was_serialised_and_parsed_again_has_the_same_digest(
    header: pb.DayHeader, sessions: list[pb.Session], events: list[pb.Event]
) -> None:
    parsed = [pb.Session.FromString(session.SerializeToString()) for session in sessions]
    again = pb.DayHeader.FromString(header.SerializeToString())
    assert day_digest(again, parsed, events) == day_digest(header, sessions, events)


@given(
    first=st.tuples(HEADER, SESSIONS, st.lists(EVENT, max_size=2)),
    second=st.tuples(HEADER, SESSIONS, st.lists(EVENT, max_size=2)),
)
def test_days_that_differ_have_different_digests(
    first: tuple[pb.DayHeader, list[pb.Session], list[pb.Event]],
    second: tuple[pb.DayHeader, list[pb.Session], list[pb.Event]],
) -> None:
    assert (day_digest(*first) == day_digest(*second)) == (first == second)


@given(texts=st.tuples(TEXT, TEXT, TEXT), other=st.tuples(TEXT, TEXT, TEXT))
def test_text_that_moves_between_neighbouring_fields_changes_the_digest(
    texts: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    def digest(modality: str, place: str, group: str) -> bytes:
        header, session, event = a_day()
        session.modality, session.place, session.group = modality, place, group
        return day_digest(header, [session], [event])

    assert (digest(*texts) == digest(*other)) == (texts == other)


HEADER_FIELDS: dict[str, Callable[[pb.DayHeader], object]] = {
    "namespace": lambda h: setattr(h, "namespace", "x"),
    "day_index": lambda h: setattr(h, "day_index", 5),
    "date": lambda h: setattr(h, "date", "x"),
    "batch_id": lambda h: setattr(h, "batch_id", "x"),
    "owner": lambda h: h.ClearField("owner"),
    "owner.participant_id": lambda h: setattr(h.owner, "participant_id", "x"),
    "owner.display_name": lambda h: setattr(h.owner, "display_name", "x"),
    "owner.role": lambda h: setattr(h.owner, "role", pb.PARTICIPANT_ROLE_PERSON),
}
SESSION_FIELDS: dict[str, Callable[[pb.Session], object]] = {
    "session_id": lambda s: setattr(s, "session_id", "x"),
    "participants": lambda s: s.participants.pop(),
    "participants order": lambda s: s.participants.reverse(),
    "participants.participant_id": lambda s: setattr(s.participants[1], "participant_id", "x"),
    "participants.display_name": lambda s: setattr(s.participants[1], "display_name", "x"),
    "participants.role": lambda s: setattr(s.participants[1], "role", pb.PARTICIPANT_ROLE_ASSISTANT),
    "started_at": lambda s: setattr(s, "started_at", "x"),
    "ended_at": lambda s: setattr(s, "ended_at", "x"),
    "modality": lambda s: setattr(s, "modality", "x"),
    "place": lambda s: setattr(s, "place", "x"),
    "group": lambda s: setattr(s, "group", "x"),
    "turns": lambda s: s.turns.pop(),
    "turns order": lambda s: s.turns.reverse(),
    "turns.turn_id": lambda s: setattr(s.turns[0], "turn_id", "x"),
    "turns.speaker_id": lambda s: setattr(s.turns[0], "speaker_id", "x"),
    "turns.text": lambda s: setattr(s.turns[0], "text", "x"),
    "turns.text absent": lambda s: setattr(s.turns[0], "text", ""),
    "turns.said_at": lambda s: setattr(s.turns[0], "said_at", "x"),
}
EVENT_FIELDS: dict[str, Callable[[pb.Event], object]] = {
    "event_id": lambda e: setattr(e, "event_id", "x"),
    "happened_at": lambda e: setattr(e, "happened_at", "x"),
    "text": lambda e: setattr(e, "text", "x"),
    "category": lambda e: setattr(e, "category", "x"),
}


@pytest.mark.parametrize("change", HEADER_FIELDS.values(), ids=HEADER_FIELDS)
def test_every_listed_header_field_counts(change: Callable[[pb.DayHeader], object]) -> None:
    header, session, event = a_day()
    before = day_digest(header, [session], [event])
    change(header)
    assert day_digest(header, [session], [event]) != before


@pytest.mark.parametrize("change", SESSION_FIELDS.values(), ids=SESSION_FIELDS)
def test_every_listed_session_field_counts(change: Callable[[pb.Session], object]) -> None:
    header, session, event = a_day()
    before = day_digest(header, [session], [event])
    change(session)
    assert day_digest(header, [session], [event]) != before


@pytest.mark.parametrize("change", EVENT_FIELDS.values(), ids=EVENT_FIELDS)
def test_every_listed_event_field_counts(change: Callable[[pb.Event], object]) -> None:
    header, session, event = a_day()
    before = day_digest(header, [session], [event])
    change(event)
    assert day_digest(header, [session], [event]) != before


def test_every_field_of_the_frames_is_either_listed_or_left_out_on_purpose() -> None:
    """A field added to the contract later must be put into a table or named here."""
    left_out = {"DayHeader.model_access", "Session.continuation"}
    field_names = {
        *(f"DayHeader.{name.split('.')[0].split(' ')[0]}" for name in HEADER_FIELDS),
        *(f"Session.{name.split('.')[0].split(' ')[0]}" for name in SESSION_FIELDS),
        *(f"Event.{name}" for name in EVENT_FIELDS),
        *(f"Turn.{name}" for name in ("turn_id", "speaker_id", "text", "said_at")),
        *(f"Participant.{name}" for name in ("participant_id", "display_name", "role")),
    }
    messages = (pb.DayHeader, pb.Session, pb.Event, pb.Turn, pb.Participant)
    there = {f"{m.DESCRIPTOR.name}.{field.name}" for m in messages for field in m.DESCRIPTOR.fields}
    assert there == field_names | left_out


def test_model_access_does_not_count() -> None:
    header, session, event = a_day()
    before = day_digest(header, [session], [event])
    header.model_access.token = "good for one call"
    header.model_access.models.add(name="m", role=pb.MODEL_ROLE_READER)
    assert day_digest(header, [session], [event]) == before


def test_the_encoding_of_a_small_day_by_hand() -> None:
    header = pb.DayHeader(namespace="n", day_index=12, date="2025-01-13", batch_id="b")
    header.owner.CopyFrom(pb.Participant(participant_id="p", display_name="é", role=pb.PARTICIPANT_ROLE_OWNER))
    event = pb.Event(event_id="e", happened_at="t", text="x")
    by_hand = (
        b"\0\0\0\1n" + b"\0\0\0\x0212" + b"\0\0\0\x0a2025-01-13" + b"\0\0\0\1b"
        b"\0\0\0\1p" + b"\0\0\0\2\xc3\xa9" + b"\0\0\0\x011"
        b"\0\0\0\x010"  # no session
        b"\0\0\0\x011" + b"\0\0\0\1e" + b"\0\0\0\1t" + b"\0\0\0\1x" + b"\xff\xff\xff\xff"
    )
    day = DayDigest()
    day.add(pb.IngestRequest(header=header))
    day.add(pb.IngestRequest(event=event))
    assert day.encoded() == by_hand
    assert day.digest() == hashlib.sha256(by_hand).digest()


def test_the_trailer_carries_counts_and_digest() -> None:
    header, session, event = a_day()
    day = DayDigest()
    day.add(pb.IngestRequest(header=header))
    for frame in split(session, [1]):
        day.add(pb.IngestRequest(session=frame))
    day.add(pb.IngestRequest(event=event))
    trailer = day.trailer()
    day.add(pb.IngestRequest(trailer=trailer))
    assert (trailer.session_count, trailer.turn_count, trailer.event_count) == (1, 2, 1)
    assert trailer.digest_version == DIGEST_VERSION == 1
    assert trailer.digest == day.digest() == day_digest(header, [session], [event])


def frames_of_a_day() -> dict[str, pb.IngestRequest]:
    header, session, event = a_day()
    return {
        "header": pb.IngestRequest(header=header),
        "session": pb.IngestRequest(session=session),
        "more": pb.IngestRequest(session=pb.Session(session_id="s", continuation=True)),
        "other": pb.IngestRequest(session=pb.Session(session_id="s2")),
        "more with place": pb.IngestRequest(session=pb.Session(session_id="s", continuation=True, place="Quay")),
        "event": pb.IngestRequest(event=event),
        "trailer": pb.IngestRequest(trailer=pb.DayTrailer()),
        "nothing": pb.IngestRequest(),
    }


@pytest.mark.parametrize(
    ("order", "field"),
    [
        (["session"], "header"),
        (["trailer"], "header"),
        (["header", "header"], "header"),
        (["header", "nothing"], "frame"),
        (["header", "more"], "session.continuation"),
        (["header", "session", "other", "more"], "session.continuation"),
        (["header", "session", "more with place"], "session.place"),
        (["header", "session", "other", "session"], "session.session_id"),
        (["header", "event", "session"], "session"),
        (["header", "session", "event", "more"], "session"),
        (["header", "trailer", "event"], "event"),
        (["header", "trailer", "trailer"], "trailer"),
    ],
)
def test_a_frame_out_of_order_is_refused_and_names_the_field(order: list[str], field: str) -> None:
    frames = frames_of_a_day()
    day = DayDigest()
    for name in order[:-1]:
        day.add(frames[name])
    with pytest.raises(FrameError) as error:
        day.add(frames[order[-1]])
    assert error.value.field == field


def test_a_digest_without_a_header_is_refused() -> None:
    with pytest.raises(FrameError, match="no header"):
        DayDigest().digest()
