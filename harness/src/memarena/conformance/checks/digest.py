"""DIG: the digest of small days is tested first, so that a wrong digest is reported once, not by every check."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from functools import partial
from itertools import product
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
_COMPOSED = "caf\u00e9"


class Step(NamedTuple):
    """A day that is a little richer than the one before, and the test vector of the same kind."""

    what: str
    vector: str
    frames: list[pb.IngestRequest]


def _steps(backend: BackendUnderTest) -> list[Step]:
    def of(*sessions: pb.Session, events: tuple[pb.Event, ...] = (), day: int = 0) -> list[pb.IngestRequest]:
        return backend.namespace().frames(*sessions, events=events, day=day)

    ns = backend.namespace()
    return [
        Step("an empty day", "empty_day", of(day=7)),
        Step("a day with one session of one turn", "absent_modality_place_group", of(ns.session("Good morning."))),
        Step("a day with a session that has every field", "one_session", _rich_day(backend, "Harbour")),
        Step("a day with a session without turns and one with a turn without text", "empty_turn_text",
             of(ns.session(), ns.session(""))),
        Step("a day with one event", "events_only", of(events=(fixtures.event(backend.new_id(), "It rained."),))),
        Step("a day with text outside ASCII", "composed",
             of(ns.session("Wir trafen uns im Caf\u00e9. \U0001f3bb"))),
        *(Step(f"a day whose {path} is not normalised", "decomposed",
               edited_day(_rich_day(backend, "Harbour"), path, " Cafe\u0301 \ufb01\r\n\r ")) for path in TEXTS),
        *(Step(f"a day whose {path} is a blank", "white_space_and_controls",
               edited_day(_rich_day(backend, "Harbour"), path, " ")) for path in OPTIONAL),
        *(Step(f"a day without {path}, with every other field", "absent_modality_place_group",
               edited_day(_rich_day(backend, "Harbour"), path, "")) for path in OPTIONAL),
        Step("a day with a session split over two frames", "split_session",
             of(*fixtures.split(ns.session("One.", "Two."), 1))),
        Step("a day out of the order of ids and times", "order_of_the_wire", _out_of_order(ns)),
        *(Step(f"a day of the day_index {day}", "largest_day_index", of(day=day)) for day in (65_537, 2**31 + 1)),
    ]  # fmt: skip


OPTIONAL = ("session.modality", "session.place", "session.group", "session.turns.text", "event.category")
TEXTS = (*OPTIONAL, "header.owner.display_name", "session.participants.display_name", "event.text")
"""Paths of the fields of a day that are text."""


def _rich_day(backend: BackendUnderTest, text: str) -> list[pb.IngestRequest]:
    """Return a day with every field set."""
    ns = backend.namespace()
    frames = ns.frames(ns.session("It is late.", "So it is."), events=[fixtures.event(backend.new_id(), "It rained.")])
    for path in TEXTS:
        frames = edited_day(frames, path, f"{text} {path}")  # each another text, or swapped fields would not show
    return frames


def _out_of_order(ns: NamespaceFixture) -> list[pb.IngestRequest]:
    """Return a day with sessions, turns and events out of the order of ids and times."""
    sessions = []
    for letter, minute in (("z", 300), ("a", 20), ("m", 120)):
        session_id = f"{letter}-{ns.backend.new_id()}"
        session = fixtures.session(session_id, ["Later.", "Earlier.", "In between.", "So it was."], minute=minute)
        for index, turn in enumerate(session.turns):
            turn.turn_id = f"{'zamb'[index]}{index}-{session_id}"
            turn.said_at = fixtures.moment(0, minute + (4 - index) % 4)
        sessions.append(session)
    sessions[1].participants.reverse()
    events = [
        pb.Event(event_id=f"{letter}-{ns.backend.new_id()}", happened_at=fixtures.moment(0, minute), text="It rained.")
        for letter, minute in (("y", 400), ("b", 30), ("k", 200))
    ]
    return ns.frames(*sessions, events=events)


@check("dig.gate", "DIG-1", "DIG-2", "DIG-3", "DIG-4", "DIG-5", "DIG-6")
def gate(backend: BackendUnderTest) -> None:
    """The digest of small days is accepted; if not, which mistake it has."""
    before = "no day before it"
    for step in _steps(backend):
        try:
            backend.retried(partial(backend.ingest, step.frames))
        except RefusedError as error:
            if error.code != "DATA_LOSS":
                continue  # that is for other checks to report
            backend.digest_is_wrong = True
            says = f", and the backend says {error.message[:200]!r}" if error.message else ""
            raise BrokenError(_diagnosis(backend, step, f"{before}{says}")) from error
        before = f"{step.what} was accepted"


def _diagnosis(backend: BackendUnderTest, step: Step, before: str) -> str:
    right = TABLE_1.day(step.frames)
    shown = right[:_SHOWN_BYTES].hex() + ("…" if len(right) > _SHOWN_BYTES else "")
    reported = f"{step.what} is DATA_LOSS"
    vector = f"compare the vector {step.vector} of digest.v1.json; expected encoding: {shown}"
    for name, more in product(("session_count", "turn_count", "event_count"), (-2, -1, 1, 2)):
        count = getattr(step.frames[-1].trailer, name)
        with suppress(RefusedError, ValueError):  # there is no number below zero
            backend.ingest(edited_day(step.frames, f"trailer.{name}", count + more, seal=False))
            return f"{reported}: it counts {count + more} for {name}, and {count} came (DIG-8); {before}"
    for mistake, encoding in FAULTS.items():
        wrong = encoding.day(step.frames)
        if wrong == right:
            continue
        with suppress(RefusedError):
            backend.ingest(edited_day(step.frames, "trailer.digest", encoding.digest(step.frames), seal=False))
            at = first_difference(right, wrong)
            return (
                f"{reported}: {mistake}; the first byte that differs is {at}: expected {right[at : at + 8].hex()}, "
                f"hashed {wrong[at : at + 8].hex()}; {before}; {vector}"
            )
    return f"{reported}, by none of the known mistakes; {before}; {vector}"


ALTERED: tuple[tuple[str, object], ...] = (
    ("header.day_index", lambda day: day + 1),
    ("header.date", "2025-02-03"),
    *((f"header.{name}", lambda text: f"{text}x") for name in ("batch_id", "owner.participant_id")),
    *((f"{kind}_id", lambda text: f"{text}x") for kind in ("session.session", "session.turns.turn", "event.event")),
    ("session.participants", lambda each: [*reversed(each)]),
    ("session.participants.participant_id", "p9"),
    ("session.participants.role", pb.PARTICIPANT_ROLE_ASSISTANT),
    ("session.started_at", lambda time: time.replace("+00:00", "Z")),
    ("session.ended_at", fixtures.moment(0, 300)),
    ("session.turns", lambda each: [*reversed(each)]),
    ("session.turns.speaker_id", "p1"),
    ("session.turns.said_at", fixtures.moment(0, 2)),
    ("event.happened_at", fixtures.moment(0, 1)),
    *((path, partial(unicodedata.normalize, "NFD")) for path in TEXTS),
    *((path, alter) for path in TEXTS for alter in (str.upper, lambda text: f"{text} ")),
    *((path, "") for path in OPTIONAL),
)
"""Every field of the table, altered so that the day stays sound: only the digest can tell."""


@check("dig.every-field", "DIG-1", "DIG-2", "DIG-4", "DIG-6")
def every_field(backend: BackendUnderTest) -> None:
    """Any field of the table that was altered on the way is DATA_LOSS."""
    ns, whole = backend.namespace(), _rich_day(backend, _COMPOSED)
    for path, value in (*ALTERED, ("header.namespace", ns.namespace)):
        ns.refuse(edited_day(whole, path, value, seal=False), "DATA_LOSS", f"an altered {path}")
    blank = whole
    for path in OPTIONAL:
        blank = edited_day(blank, path, " ")
    for path in OPTIONAL:
        ns.refuse(edited_day(blank, path, "", seal=False), "DATA_LOSS", f"{path}, a blank left out on the way,")
    ns.expect_ok(partial(backend.ingest, whole), "a day with every field set")
