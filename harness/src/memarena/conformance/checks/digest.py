"""DIG: the digest is computed over exactly the fields of the table, as they were sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.expectations import changed, expect_refused

_COMPOSED, _DECOMPOSED = "caf\u00e9", "cafe\u0301"
_FAR_DAY = 4_000_000_000
"""Above what a signed 32-bit integer holds."""


def _rich_session(ns: NamespaceFixture) -> pb.Session:
    """A session with every field set."""
    session = ns.session(f"We met at the {_COMPOSED}.", "It was late.")
    session.modality, session.place, session.group = "face_to_face", "Harbour", "Rowing club"
    return session


ALTERED: dict[str, tuple[int, Callable[[pb.IngestRequest], object]]] = {
    "header.day_index": (0, lambda f: setattr(f.header, "day_index", f.header.day_index + 1)),
    "header.date": (0, lambda f: setattr(f.header, "date", "2025-02-03")),
    "header.batch_id": (0, lambda f: setattr(f.header, "batch_id", f"{f.header.batch_id}x")),
    "header.owner.participant_id": (0, lambda f: setattr(f.header.owner, "participant_id", "p9")),
    "header.owner.display_name": (0, lambda f: setattr(f.header.owner, "display_name", "maya chen")),
    "session.session_id": (1, lambda f: setattr(f.session, "session_id", f"{f.session.session_id}x")),
    "session.participants, their order": (1, lambda f: f.session.participants.reverse()),
    "session.participants.participant_id": (
        1,
        lambda f: setattr(f.session.participants[1], "participant_id", "p9"),
    ),
    "session.participants.display_name": (1, lambda f: setattr(f.session.participants[1], "display_name", "O.")),
    "session.participants.role": (
        1,
        lambda f: setattr(f.session.participants[1], "role", pb.PARTICIPANT_ROLE_ASSISTANT),
    ),
    "session.started_at, the same moment": (
        1,
        lambda f: setattr(f.session, "started_at", f.session.started_at.replace("+00:00", "Z")),
    ),
    "session.ended_at": (1, lambda f: setattr(f.session, "ended_at", fixtures.moment(0, 300))),
    "session.modality": (1, lambda f: setattr(f.session, "modality", "voice_message")),
    "session.place": (1, lambda f: setattr(f.session, "place", "")),
    "session.group": (1, lambda f: setattr(f.session, "group", "rowing club")),
    "session.turns, their order": (1, lambda f: f.session.turns.reverse()),
    "session.turns.turn_id": (1, lambda f: setattr(f.session.turns[0], "turn_id", "t9")),
    "session.turns.speaker_id": (1, lambda f: setattr(f.session.turns[0], "speaker_id", "p1")),
    "session.turns.text, another normal form": (
        1,
        lambda f: setattr(f.session.turns[0], "text", f.session.turns[0].text.replace(_COMPOSED, _DECOMPOSED)),
    ),
    "session.turns.text, white space": (
        1,
        lambda f: setattr(f.session.turns[1], "text", f"{f.session.turns[1].text} "),
    ),
    "session.turns.said_at": (1, lambda f: setattr(f.session.turns[0], "said_at", fixtures.moment(0, 1))),
    "event.event_id": (2, lambda f: setattr(f.event, "event_id", "e9")),
    "event.happened_at": (2, lambda f: setattr(f.event, "happened_at", fixtures.moment(0, 1))),
    "event.text": (2, lambda f: setattr(f.event, "text", "It did not rain.")),
    "event.category": (2, lambda f: setattr(f.event, "category", "")),
}
"""Every field of the table, altered so that the day stays sound: only the digest can tell."""


@check("dig.every-field", "DIG-1", "DIG-2", "DIG-6")
def every_field(backend: BackendUnderTest) -> None:
    """Any field of the table that was altered on the way is DATA_LOSS."""
    ns = backend.namespace()
    event = fixtures.event(backend.new_id(), "It rained.")
    event.category = "community"
    whole = ns.frames(_rich_session(ns), events=[event])
    for what, (place, edit) in ALTERED.items():
        frames = changed(whole, {place: edit})
        expect_refused(partial(backend.ingest, frames), "DATA_LOSS", f"an altered {what}")
    elsewhere = backend.namespace()
    moved = changed(whole, {0: lambda f: setattr(f.header, "namespace", elsewhere.namespace)})
    expect_refused(partial(backend.ingest, moved), "DATA_LOSS", "an altered header.namespace")
    ns.commit(whole)
