"""The digest of the smallest days first: whoever computes it wrongly sees the mistake once, and not by every day."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.digest_faults import FAULTS, TABLE_1, first_difference
from memarena.conformance.errors import BrokenError
from memarena.conformance.fixtures import edited_day
from memarena.conformance.wire import RefusedError

_SHOWN_BYTES = 400
_COMPOSED, _DECOMPOSED = "caf\u00e9", "cafe\u0301"


class Step(NamedTuple):
    """A day that is a little richer than the one before, and the test vector of the same kind."""

    what: str
    vector: str
    frames: list[pb.IngestRequest]


def _steps(backend: BackendUnderTest) -> list[Step]:
    def of(*sessions: pb.Session, events: tuple[pb.Event, ...] = ()) -> list[pb.IngestRequest]:
        return backend.namespace().frames(*sessions, events=events)

    ns = backend.namespace()
    split = ns.session("One.")
    rest = pb.Session(session_id=split.session_id, continuation=True, turns=_later_turns(split))
    return [
        Step("an empty day", "empty_day", of()),
        Step("a day with one session of one turn", "absent_modality_place_group", of(ns.session("Good morning."))),
        Step("a day with a session that has every field", "one_session", of(_rich_session(ns))),
        Step("a day with a session without turns and one with a turn without text", "empty_turn_text",
             of(ns.session(), ns.session(""))),
        Step("a day with one event", "events_only", of(events=(fixtures.event(backend.new_id(), "It rained."),))),
        Step("a day with text outside ASCII", "composed",
             of(ns.session("Wir trafen uns im Caf\u00e9. \U0001f3bb"))),
        Step("a day with text that is not normalised", "decomposed", of(ns.session(" Cafe\u0301 \ufb01 "))),
        Step("a day with a session split over two frames", "split_session", of(split, rest)),
        Step("a day out of the order of ids and times", "order_of_the_wire", _out_of_order(ns)),
    ]  # fmt: skip


def _rich_session(ns: NamespaceFixture, where: str = "harbour") -> pb.Session:
    """A session with every field set."""
    session = ns.session("It was late.", f"We met at the {where}.")
    session.modality, session.place, session.group = "face_to_face", "Harbour", "Rowing club"
    return session


def _later_turns(session: pb.Session) -> list[pb.Turn]:
    return [
        pb.Turn(
            turn_id=f"{session.session_id}-1",
            speaker_id=fixtures.OWNER.participant_id,
            text="Two.",
            said_at=fixtures.moment(0, 1),
        )
    ]


def _out_of_order(ns: NamespaceFixture) -> list[pb.IngestRequest]:
    """The next day of a namespace, with sessions, turns and events out of the order of ids and times."""
    day = ns.last_day + 1
    sessions = []
    for number, (letter, minute) in enumerate((("z", 300), ("a", 20), ("m", 120))):
        session_id = f"{letter}-{ns.backend.new_id()}"
        session = fixtures.session(
            session_id, ["Later.", "Earlier.", "In between.", f"Session {number}."], day=day, minute=minute
        )
        for index, turn in enumerate(session.turns):
            turn.turn_id = f"{'zamb'[index % 4]}{index}-{session_id}"
            turn.said_at = fixtures.moment(day, minute + (len(session.turns) - index) % len(session.turns))
        sessions.append(session)
    sessions[1].participants.reverse()
    events = [
        pb.Event(event_id=f"{letter}-{ns.backend.new_id()}", happened_at=fixtures.moment(day, minute), text=text)
        for letter, minute, text in (("y", 400, "It rained."), ("b", 30, "The sun rose."), ("k", 200, "A bell rang."))
    ]
    return ns.frames(*sessions, events=events)


@check("dig.gate", "DIG-1", "DIG-2", "DIG-3", "DIG-4", "DIG-5", "DIG-6")
def gate(backend: BackendUnderTest) -> None:
    """The digest of small days is accepted; if not, which mistake it has."""
    before = "none before it"
    for step in _steps(backend):
        try:
            backend.retried(partial(backend.ingest, step.frames))
        except RefusedError as error:
            if error.code != "DATA_LOSS":
                continue  # that is for other checks to report
            backend.digest_is_wrong = True
            raise BrokenError(_diagnosis(backend, step, before)) from error
        before = f"{step.what} was accepted"


def _diagnosis(backend: BackendUnderTest, step: Step, before: str) -> str:
    right = TABLE_1.day(step.frames)
    shown = right[:_SHOWN_BYTES].hex() + ("…" if len(right) > _SHOWN_BYTES else "")
    reported = f"{step.what} is DATA_LOSS ({before})"
    vector = f"compare the vector {step.vector} of digest.v1.json; expected encoding: {shown}"
    for mistake, encoding in FAULTS.items():
        wrong = encoding.day(step.frames)
        if wrong == right:
            continue
        frames = [*step.frames]
        frames[-1] = pb.IngestRequest()
        frames[-1].CopyFrom(step.frames[-1])
        frames[-1].trailer.digest = encoding.digest(step.frames)
        try:
            backend.ingest(frames)
        except RefusedError:
            continue
        at = first_difference(right, wrong)
        return (
            f"{reported}: {mistake}; the first byte that differs is {at}: expected {right[at : at + 8].hex()}, "
            f"hashed {wrong[at : at + 8].hex()}; {vector}"
        )
    return f"{reported}, by none of the known mistakes; {vector}"


def _turned_round(values: Sequence[object]) -> list[object]:
    return [*reversed(values)]


def _longer(text: str) -> str:
    return f"{text}x"


ALTERED: tuple[tuple[str, object], ...] = (
    ("header.day_index", lambda day: day + 1),
    ("header.date", "2025-02-03"),
    ("header.batch_id", _longer),
    ("header.owner.participant_id", "p9"),
    ("header.owner.display_name", "maya chen"),
    ("session.session_id", _longer),
    ("session.participants", _turned_round),
    ("session.participants.participant_id", "p9"),
    ("session.participants.display_name", "O."),
    ("session.participants.role", pb.PARTICIPANT_ROLE_ASSISTANT),
    ("session.started_at", lambda time: time.replace("+00:00", "Z")),
    ("session.ended_at", fixtures.moment(0, 300)),
    ("session.modality", "voice_message"),
    ("session.place", ""),
    ("session.group", "rowing club"),
    ("session.turns", _turned_round),
    ("session.turns.turn_id", "t9"),
    ("session.turns.speaker_id", "p1"),
    ("session.turns.text", lambda text: text.replace(_COMPOSED, _DECOMPOSED)),
    ("session.turns.text", lambda text: f"{text} "),
    ("session.turns.said_at", fixtures.moment(0, 2)),
    ("event.event_id", "e9"),
    ("event.happened_at", fixtures.moment(0, 1)),
    ("event.text", "It did not rain."),
    ("event.category", ""),
)
"""Every field of the table, altered so that the day stays sound: only the digest can tell."""


@check("dig.every-field", "DIG-1", "DIG-2", "DIG-6")
def every_field(backend: BackendUnderTest) -> None:
    """Any field of the table that was altered on the way is DATA_LOSS."""
    ns = backend.namespace()
    event = fixtures.event(backend.new_id(), "It rained.")
    event.category = "community"
    whole = ns.frames(_rich_session(ns, _COMPOSED), events=[event])
    for path, value in (*ALTERED, ("header.namespace", backend.namespace().namespace)):
        frames = edited_day(whole, path, value, seal=False)
        ns.refuse(frames, "DATA_LOSS", f"an altered {path}")
    ns.commit(whole)
