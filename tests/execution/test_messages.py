"""Tests the messages of days and questions: they hold the ego's projection only, fit into frames, and have a digest."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena.execution.cells.messages import (
    add_privileged_evidence,
    day_batch,
    retrieved_items,
    search_request,
)
from memarena.execution.cells.opaque_ids import IdKind, NamespaceIds
from memarena.execution.planning.questions import plan_questions
from memarena.log.records import Reading
from memarena_answering import control_text
from memarena_dataset.gold import PermissionGold
from memarena_dataset.io.reading import open_dataset
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import day_digest
from memarena_proto.frames import MAX_FRAME_BYTES, split_session

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
READING = Reading(max_answer_tokens=10, max_context_tokens=100)


def ids(ego: str = "ines_okafor") -> NamespaceIds:
    return NamespaceIds(bytes(32), "cell", ego, 0)


def test_a_day_holds_exactly_the_egos_projection() -> None:
    with open_dataset(EXAMPLE) as data:
        for ego in data.egos:
            for day in range(data.day_count):
                names = ids(ego)
                batch = day_batch(data, ego, day, names, None)
                session_ids = [
                    names.real(IdKind.SESSION, f.session.session_id) for f in batch.frames if f.HasField("session")
                ]
                assert session_ids == [s.session_id for s in data.day_sessions(ego, day)]
                texts = [t.text for f in batch.frames if f.HasField("session") for t in f.session.turns]
                assert texts == [t.text for s in data.day_sessions(ego, day) for t in s.turns]
                events = [f.event.text for f in batch.frames if f.HasField("event")]
                assert events == [e.content for e in data.day_events(ego, day)]
                assert batch.frames[0].header.owner.display_name == data.agents[ego].name


def test_the_trailer_has_the_right_counts_and_digest() -> None:
    with open_dataset(EXAMPLE) as data:
        batch = day_batch(data, "ines_okafor", 0, ids(), None)
    trailer = batch.frames[-1].trailer
    sessions = [f.session for f in batch.frames if f.HasField("session")]
    events = [f.event for f in batch.frames if f.HasField("event")]
    assert (trailer.session_count, trailer.event_count) == (len(sessions), len(events))
    assert trailer.turn_count == sum(len(s.turns) for s in sessions)
    assert trailer.digest == day_digest(batch.frames[0].header, sessions, events)


def test_an_empty_day_is_a_header_and_a_trailer(tmp_path: Path) -> None:
    with open_dataset(EXAMPLE) as data:
        batch = day_batch(data, "ines_okafor", 99, ids(), None)
    assert [f.WhichOneof("frame") for f in batch.frames] == ["header", "trailer"]


@settings(max_examples=50)
@given(st.lists(st.text(max_size=200), max_size=30), st.integers(min_value=300, max_value=3000))
def test_a_split_session_keeps_every_turn_in_frames_that_fit(texts: list[str], target: int) -> None:
    """Only a turn that is too long by itself may make a frame exceed the target."""
    session = pb.Session(session_id="s" * 32, started_at="a", ended_at="b", modality="face_to_face")
    for number, text in enumerate(texts):
        session.turns.append(pb.Turn(turn_id=f"t{number}", speaker_id="p", text=text, said_at="x"))
    parts = list(split_session(session, target))
    assert [t for p in parts for t in p.turns] == list(session.turns)
    assert [p.continuation for p in parts] == [False] + [True] * (len(parts) - 1)
    assert {p.session_id for p in parts} == {"s" * 32}
    for part in parts:
        assert part.ByteSize() <= target or len(part.turns) == 1


def test_the_longest_allowed_turns_fit_into_frames() -> None:
    session = pb.Session(session_id="s", started_at="a", ended_at="b")
    for number in range(9):
        session.turns.append(pb.Turn(turn_id=f"t{number}", speaker_id="p", text="x" * (256 << 10), said_at="x"))
    frames = [pb.IngestRequest(session=part) for part in split_session(session)]
    assert len(frames) > 1
    assert max(frame.ByteSize() for frame in frames) <= MAX_FRAME_BYTES


def test_the_same_person_has_another_id_in_another_namespace() -> None:
    with open_dataset(EXAMPLE) as data:
        id_sets = []
        for ego in ("ines_okafor", "tomas_lindqvist"):
            frames = day_batch(data, ego, 0, ids(ego), None).frames
            id_sets.append(
                {p.participant_id for f in frames for p in f.session.participants if p.display_name == "Priya Raman"}
            )
    assert all(len(s) == 1 for s in id_sets)
    assert id_sets[0] != id_sets[1]


def test_a_question_has_asker_and_time_and_no_field_of_the_instance() -> None:
    with open_dataset(EXAMPLE) as data:
        for question in plan_questions(data, data.instances, "interleaved", 0):
            request = search_request(question, READING, ids(question.instance.ego_agent_id), [("b", "2"), ("a", "1")])
            assert (request.text, request.asked_at, request.as_of_day) == (
                question.question_text,
                question.asked_at,
                question.day,
            )
            assert [o.key for o in request.options] == ["a", "b"]
            assert not request.HasField("privileged_evidence")
            known = request.requester.kind == pb.REQUESTER_KIND_KNOWN_PERSON
            assert known == bool(request.requester.participant_id) == bool(request.requester.display_name)


def test_evidence_names_sessions_in_the_order_in_which_they_were_held() -> None:
    with open_dataset(EXAMPLE) as data:
        questions = plan_questions(data, data.instances, "interleaved", 0)
        question = next(q for q in questions if len(q.instance.evidence_session_ids) > 1)
        names = ids(question.instance.ego_agent_id)
        request = search_request(question, READING, names, [])
        add_privileged_evidence(request, data, question, names)
        real = [names.real(IdKind.SESSION, s) or "" for s in request.privileged_evidence.session_ids]
        assert sorted(real) == sorted(question.instance.evidence_session_ids)
        starts = [data.session(s).start_time for s in real]
    assert starts == sorted(starts)


def test_the_whole_corpus_is_every_session_and_event_of_the_day_whoever_took_part() -> None:
    with open_dataset(EXAMPLE) as data:
        ego = data.egos[0]
        for day in range(data.day_count):
            names = ids(ego)
            batch = day_batch(data, ego, day, names, None, "whole_corpus")
            session_ids = [
                names.real(IdKind.SESSION, f.session.session_id) for f in batch.frames if f.HasField("session")
            ]
            expected = [s for s in data.corpus.session_ids() if int(data.corpus.start_of(s)) == day]
            assert sorted(filter(None, session_ids)) == sorted(expected)
            starts = [data.corpus.start_of(s) for s in session_ids if s is not None]
            assert starts == sorted(starts)
            assert batch.events == sum(1 for event in data.events if event.day == day)
            assert batch.sessions > day_batch(data, ego, day, ids(ego), None).sessions
            evidence = day_batch(data, ego, day, ids(ego), None, "evidence_sessions")
            cited = {s for each in data.instances for s in each.evidence_session_ids}
            assert (evidence.sessions, evidence.events) == (len(cited & {*expected}), 0)
        owners = {batch.frames[0].header.owner.participant_id}
        owning = [p for f in batch.frames for p in f.session.participants if p.role == pb.PARTICIPANT_ROLE_OWNER]
        assert {p.participant_id for p in owning} <= owners


def test_the_access_marker_has_the_gold_of_permission_questions_only() -> None:
    words = control_text()
    with open_dataset(EXAMPLE) as data:
        markers = set()
        for question in plan_questions(data, data.instances, "interleaved", 0):
            names = ids(question.instance.ego_agent_id)
            request = search_request(question, READING, names, [])
            add_privileged_evidence(request, data, question, names, access_marker=True)
            gold, marker = question.instance.gold, request.privileged_evidence.access_marker
            if isinstance(gold, PermissionGold):
                assert marker == (words.access_denied if gold.expected_action == "withhold" else words.access_allowed)
                markers.add(marker)
            else:
                assert marker == ""
            add_privileged_evidence(request, data, question, names)
            assert request.privileged_evidence.access_marker == ""
    assert markers == {words.access_denied, words.access_allowed}


@pytest.mark.parametrize(("known", "unknown"), [(2, 0), (1, 1), (0, 3)])
def test_items_are_translated_back_and_unknown_ids_counted(known: int, unknown: int) -> None:
    names = ids()
    tokens = [names.make(IdKind.SESSION, f"sess_{i}") for i in range(known)]
    item = pb.MemoryItem(text="t", score=0.5, source_session_ids=[*tokens, *["x" * 32] * unknown])
    (retrieved_item,) = retrieved_items([item], names)
    assert retrieved_item.session_ids == tuple(f"sess_{i}" for i in range(known))
    assert retrieved_item.unknown_ids == unknown
