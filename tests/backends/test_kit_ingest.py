"""Tests Ingest over gRPC: refusals, atomic days, replays, order, limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import grpc
import pytest
from memarena_backend import Call, Day
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import (
    FRIEND,
    OWNER,
    Served,
    Verbatim,
    bad_fields,
    code_of,
    make_day,
    make_event,
    make_header,
    make_query,
    make_session,
    make_turn,
    message_of,
    moment,
    retry_delay_s,
    sealed,
)

INVALID = grpc.StatusCode.INVALID_ARGUMENT
Frames = list[pb.IngestRequest]


def one_of_each() -> Frames:
    return make_day("n1", 3, [make_session("s1", ["hello", "hi"], day=3)], [make_event("e1", "storm", day=3)])


def edited(edit: Callable[[pb.DayHeader, pb.Session, pb.Event], object]) -> Frames:
    """Return a valid day after an edit, with a trailer that matches the edited frames."""
    header, session, event, _ = one_of_each()
    edit(header.header, session.session, event.event)
    return sealed([header, session, event])


def put(path: str, value: object) -> Callable[[pb.DayHeader, pb.Session, pb.Event], object]:
    """Return an edit that sets one field, such as ``session.turns.0.text``."""

    def edit(header: pb.DayHeader, session: pb.Session, event: pb.Event) -> None:
        target: object = {"header": header, "session": session, "event": event}[path.split(".", maxsplit=1)[0]]
        *inner, last = path.split(".")[1:]
        for name in inner:
            target = target[int(name)] if name.isdigit() else getattr(target, name)  # type: ignore[index]
        setattr(target, last, value)

    return edit


BROKEN_FIELDS = [
    ("header.namespace", ""),
    ("header.namespace", "n\0"),
    ("header.date", ""),
    ("header.date", "2025-13-01"),
    ("header.date", "tomorrow"),
    ("header.batch_id", ""),
    ("header.owner.participant_id", ""),
    ("header.owner.display_name", ""),
    ("header.owner.role", pb.PARTICIPANT_ROLE_UNSPECIFIED),
    ("header.owner.role", pb.PARTICIPANT_ROLE_PERSON),
    ("session.session_id", ""),
    ("session.started_at", ""),
    ("session.started_at", "2025-01-04 09:00"),
    ("session.started_at", "2025-01-04T09:00:00"),
    ("session.ended_at", ""),
    ("session.ended_at", "2025-01-04T08:59:59+00:00"),
    ("session.ended_at", "2025-01-04T10:00:00+02:00"),
    ("session.place", "a\0b"),
    ("session.participants.0.participant_id", ""),
    ("session.participants.0.display_name", ""),
    ("session.participants.1.role", pb.PARTICIPANT_ROLE_UNSPECIFIED),
    ("session.participants.1.role", 99),
    ("session.participants.1.participant_id", OWNER.participant_id),
    ("session.turns.1.turn_id", ""),
    ("session.turns.1.turn_id", "s1.0"),
    ("session.turns.1.speaker_id", ""),
    ("session.turns.1.speaker_id", "p-nobody"),
    ("session.turns.1.said_at", ""),
    ("session.turns.1.said_at", "2025-02-30T09:00:00+00:00"),
    ("session.turns.1.text", "a\0b"),
    ("event.event_id", ""),
    ("event.happened_at", ""),
    ("event.text", ""),
    ("event.text", "\0"),
]


@pytest.mark.parametrize(("path", "value"), BROKEN_FIELDS)
def test_a_missing_or_malformed_field_is_named(served: Served, path: str, value: object) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.ingest(edited(put(path, value)))
    assert code_of(caught.value) is INVALID
    fields = [field.replace("[", ".").replace("]", "") for field in bad_fields(caught.value)]
    assert fields == [path]
    assert path.rpartition(".")[2] in message_of(caught.value)
    # Control: the same day without the fault is accepted, so the refusal left nothing committed or locked.
    assert not served.ingest(one_of_each()).replayed


def test_missing_messages_are_named(served: Served) -> None:
    def without_owner(header: pb.DayHeader, _session: pb.Session, _event: pb.Event) -> None:
        header.ClearField("owner")

    def without_participants(_header: pb.DayHeader, session: pb.Session, _event: pb.Event) -> None:
        session.ClearField("turns")
        session.ClearField("participants")

    for field, edit in (("header.owner", without_owner), ("session.participants", without_participants)):
        with pytest.raises(grpc.RpcError) as caught:
            served.ingest(edited(edit))
        assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, [field])


def order_cases() -> Iterator[tuple[str, str, Frames]]:
    header, session, event, trailer = one_of_each()
    more = pb.IngestRequest(session=pb.Session(session_id="s1", continuation=True, turns=[make_turn("x", "more")]))
    place_frame = pb.IngestRequest(session=pb.Session(session_id="s1", continuation=True, place="elsewhere"))
    other = pb.IngestRequest(session=make_session("s2", ["there"], day=3))
    yield "nothing at all", "header", []
    yield "no header", "header", [session, trailer]
    yield "two headers", "header", [header, header, trailer]
    yield "an empty frame", "frame", [header, pb.IngestRequest(), trailer]
    yield "a session after an event", "session", [header, event, session, trailer]
    yield "something after the trailer", "event", [header, session, trailer, event]
    yield "two trailers", "trailer", [header, session, event, trailer, trailer]
    yield "no trailer", "trailer", [header, session, event]
    yield "a continuation without its session", "session.continuation", [header, more, trailer]
    yield "a continuation after another session", "session.continuation", [header, session, other, more, trailer]
    yield "a continuation that sets more than turns", "session.place", [header, session, place_frame, trailer]
    yield "a session opened twice", "session.session_id", [header, session, session, trailer]


@pytest.mark.parametrize(
    ("field", "frames"), [(f, x) for _, f, x in order_cases()], ids=[n for n, _, _ in order_cases()]
)
def test_frames_out_of_order_are_refused(served: Served, field: str, frames: Frames) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.ingest(frames)
    assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, [field])
    with pytest.raises(grpc.RpcError) as caught:
        served.search(make_query("n1", "hello", 3))
    assert code_of(caught.value) is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("field", "change", "code"),
    [
        ("trailer.digest_version", {"digest_version": 0}, INVALID),
        ("trailer.digest_version", {"digest_version": 2}, INVALID),
        ("trailer.digest", {"digest": b""}, INVALID),
        ("trailer.digest", {"digest": b"x" * 31}, INVALID),
        ("trailer.digest", {"digest": b"x" * 32}, grpc.StatusCode.DATA_LOSS),
        ("trailer.session_count", {"session_count": 2}, grpc.StatusCode.DATA_LOSS),
        ("trailer.turn_count", {"turn_count": 1}, grpc.StatusCode.DATA_LOSS),
        ("trailer.event_count", {"event_count": 0}, grpc.StatusCode.DATA_LOSS),
    ],
)
def test_a_trailer_that_does_not_match_is_refused(
    served: Served, field: str, change: dict[str, int | bytes], code: grpc.StatusCode
) -> None:
    frames = one_of_each()
    for name, value in change.items():
        setattr(frames[-1].trailer, name, value)
    with pytest.raises(grpc.RpcError) as caught:
        served.ingest(frames)
    assert code_of(caught.value) is code
    assert field in message_of(caught.value)
    assert not served.ingest(one_of_each()).replayed


def test_a_day_is_visible_only_after_its_call_returned(served: Served) -> None:
    go_on = threading.Event()
    frames = make_day("n1", 0, [make_session("s1", ["the boat is blue"])])

    def slowly() -> Iterator[pb.IngestRequest]:
        yield from frames[:2]
        go_on.wait(10)
        yield from frames[2:]

    call = served.stub.Ingest.future(slowly(), timeout=20)
    time.sleep(0.2)
    with pytest.raises(grpc.RpcError) as caught:
        served.search(make_query("n1", "boat", 0))
    assert code_of(caught.value) is grpc.StatusCode.ABORTED
    assert retry_delay_s(caught.value) is not None
    with pytest.raises(grpc.RpcError) as caught:
        served.ingest(frames)
    assert code_of(caught.value) is grpc.StatusCode.ABORTED
    go_on.set()
    assert call.result().visible_through_day == 0
    assert served.find("n1", "boat", 0) == ["the boat is blue"]


def test_a_cancelled_stream_commits_nothing_and_can_be_repeated_at_once(served: Served) -> None:
    served.ingest(make_day("n1", 0, [make_session("s0", ["boat one"])]))
    frames = make_day("n1", 1, [make_session("s1", ["boat two"], day=1)])
    for _ in range(5):
        blocked = threading.Event()

        def half(blocked: threading.Event = blocked) -> Iterator[pb.IngestRequest]:
            yield from frames[:2]
            blocked.wait(10)

        call = served.stub.Ingest.future(half(), timeout=20)
        time.sleep(0.05)
        call.cancel()
        blocked.set()
        assert served.find("n1", "boat", 0) == ["boat one"]
    assert not served.ingest(frames).replayed
    assert served.find("n1", "boat", 1) == ["boat one", "boat two"]


def test_a_call_that_is_cancelled_while_the_memory_works_leaves_nothing(served: Served, memory: Verbatim) -> None:
    served.ingest(make_day("n1", 0, [make_session("s0", ["boat one"])]))
    inside, leave = threading.Event(), threading.Event()

    def hold(_namespace: str, day: Day, _call: Call) -> None:
        if day.index == 1:
            inside.set()
            assert leave.wait(10)

    memory.before_commit = hold
    frames = make_day("n1", 1, [make_session("s1", ["boat two"], day=1)])
    call = served.stub.Ingest.future(iter(frames), timeout=20)
    assert inside.wait(10)
    call.cancel()
    time.sleep(0.1)
    leave.set()
    assert served.find("n1", "boat", 0) == ["boat one"]
    assert memory.restored == ["n1"], "the memory's part of the day was dropped and rebuilt from what counts"
    memory.before_commit = lambda *_: None
    assert not served.ingest(frames).replayed


def test_a_deadline_that_passes_while_frames_are_awaited_leaves_nothing(served: Served) -> None:
    frames = make_day("n1", 0, [make_session("s1", ["boat"])])
    release = threading.Event()

    def stalled() -> Iterator[pb.IngestRequest]:
        yield from frames[:2]
        release.wait(10)

    started = time.monotonic()
    with pytest.raises(grpc.RpcError) as caught:
        served.stub.Ingest(stalled(), timeout=0.3)
    release.set()
    assert code_of(caught.value) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - started < 5
    assert not served.ingest(frames).replayed


def test_a_memory_that_fails_fails_the_call_and_not_the_namespace(served: Served, memory: Verbatim) -> None:
    served.ingest(make_day("n1", 0, [make_session("s0", ["boat one"])]))

    def fail(_namespace: str, _day: Day, _call: Call) -> None:
        raise ZeroDivisionError("the index broke")

    memory.before_commit = fail
    frames = make_day("n1", 1, [make_session("s1", ["boat two"], day=1)])
    with pytest.raises(grpc.RpcError) as caught:
        served.ingest(frames)
    assert code_of(caught.value) is grpc.StatusCode.INTERNAL
    assert message_of(caught.value) == "ZeroDivisionError: the index broke"
    assert served.find("n1", "boat", 0) == ["boat one"]
    memory.before_commit = lambda *_: None
    assert served.ingest(frames).visible_through_day == 1


def test_ten_replays_change_nothing_however_many_days_came_after(served: Served) -> None:
    first = make_day("n1", 0, [make_session("s0", ["boat one"])])
    assert not served.ingest(first).replayed
    served.ingest(make_day("n1", 4, [make_session("s4", ["boat two"], day=4)]))
    result_before = served.search(make_query("n1", "boat", 4))
    for _ in range(10):
        response = served.ingest(first)
        assert (response.replayed, response.visible_through_day) == (True, 4)
    after = served.search(make_query("n1", "boat", 4))
    assert list(after.items) == list(result_before.items)


def test_a_known_batch_with_different_content_is_refused_and_the_day_kept(served: Served) -> None:
    served.ingest(make_day("n1", 0, [make_session("s0", ["boat one"])], batch_id="b"))
    for day in (0, 7):
        with pytest.raises(grpc.RpcError) as caught:
            served.ingest(make_day("n1", day, [make_session("s9", ["boat two"])], batch_id="b"))
        assert code_of(caught.value) is grpc.StatusCode.ALREADY_EXISTS
    assert served.find("n1", "boat", 0) == ["boat one"]


def test_days_must_increase_and_may_have_gaps(served: Served) -> None:
    served.ingest(make_day("n1", 2))
    assert served.ingest(make_day("n1", 9)).visible_through_day == 9
    for day in (0, 2, 8, 9):
        with pytest.raises(grpc.RpcError) as caught:
            served.ingest(make_day("n1", day, batch_id=f"new-{day}"))
        assert code_of(caught.value) is grpc.StatusCode.FAILED_PRECONDITION
    served.ingest(make_day("n2", 0))  # another namespace has its own order


def test_a_batch_id_belongs_to_its_namespace(served: Served) -> None:
    served.ingest(make_day("n1", 0, batch_id="b"))
    assert not served.ingest(make_day("n2", 0, batch_id="b")).replayed


def test_a_session_split_over_frames_is_one_session(served: Served) -> None:
    session = make_session("s1", [f"boat {n}" for n in range(7)])
    opening = pb.Session()
    opening.CopyFrom(session)
    del opening.turns[2:]
    parts = [
        pb.Session(session_id="s1", continuation=True, turns=session.turns[2:5]),
        pb.Session(session_id="s1", continuation=True, turns=session.turns[5:]),
    ]
    header = pb.IngestRequest(header=make_header("n1", 0))
    split = sealed([header, *(pb.IngestRequest(session=part) for part in (opening, *parts))])
    served.ingest(split)
    response = served.search(make_query("n1", "boat", 0))
    assert [item.text for item in response.items] == [f"boat {n}" for n in range(7)]
    # Merged first, so that the same day in one frame has the same digest: it is a replay.
    assert served.ingest(make_day("n1", 0, [session])).replayed


def test_a_day_without_anything_and_odd_but_sound_sessions_are_fine(served: Served) -> None:
    alone = pb.Session(session_id="s1", participants=[FRIEND], started_at=moment(0), ended_at=moment(0))
    silent = make_session("s2", ["", "boat"])
    leap = make_session("s3", [])
    leap.started_at, leap.ended_at = "2016-12-31T23:59:60Z", "2017-01-01t00:00:00.123456789z"
    served.ingest(make_day("n1", 0))
    served.ingest(make_day("n1", 1, [alone, silent, leap]))
    assert served.find("n1", "boat", 1) == ["boat"]


def test_reset_forgets_days_and_batches_of_one_namespace_only(served: Served) -> None:
    for namespace in ("n1", "n2"):
        served.ingest(make_day(namespace, 5, [make_session("s1", ["boat"])], batch_id="b"))
    served.reset("n1")
    served.reset("n1")
    served.reset("never seen")
    with pytest.raises(grpc.RpcError) as caught:
        served.search(make_query("n1", "boat", 5))
    assert code_of(caught.value) is grpc.StatusCode.NOT_FOUND
    assert served.find("n2", "boat", 5) == ["boat"]
    assert not served.ingest(make_day("n1", 0, [make_session("s1", ["ship"])], batch_id="b")).replayed
    assert served.find("n1", "ship", 0) == ["ship"]


def test_reset_needs_a_namespace(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.reset("")
    assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, ["namespace"])
