"""DIG: the digest is computed over exactly the fields of the table, as they were sent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.expectations import expect_refused
from memarena.conformance.fixtures import edited_day

_COMPOSED, _DECOMPOSED = "caf\u00e9", "cafe\u0301"
_FAR_DAY = 4_000_000_000
"""Above what a signed 32-bit integer holds."""


def _rich_session(ns: NamespaceFixture) -> pb.Session:
    """A session with every field set."""
    session = ns.session("It was late.", f"We met at the {_COMPOSED}.")
    session.modality, session.place, session.group = "face_to_face", "Harbour", "Rowing club"
    return session


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
    whole = ns.frames(_rich_session(ns), events=[event])
    for path, value in (*ALTERED, ("header.namespace", backend.namespace().namespace)):
        frames = edited_day(whole, path, value, seal=False)
        expect_refused(partial(backend.ingest, frames), "DATA_LOSS", f"an altered {path}")
    ns.commit(whole)
