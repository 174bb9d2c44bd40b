"""TXT: which text is refused, and that all other text comes back as it was sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import with_access
from memarena.conformance.fixtures import edited, edited_day
from memarena.conformance.wire import RefusedError

_CUT_SHORT = b"\xf0\x9f\x98"
"""Three of the four bytes of an emoji: as long as U+FFFD, which lenient decoders make of them."""


@check("txt.nul", "TXT-1")
def nul(backend: BackendUnderTest) -> None:
    """U+0000 is refused wherever text stands."""
    (ns, kept), fact = backend.filled(), backend.fact()
    sound = ns.frames(ns.session(fact.statement), events=[fixtures.event(backend.new_id(), "It rained.", 1)])
    for path in (
        "header.owner.display_name",
        *(f"session.{name}" for name in ("modality", "place", "group", "turns.text", "participants.display_name")),
        *(f"event.{name}" for name in ("text", "category")),
    ):
        frames = edited_day(sound, path, "a\0b")
        ns.refuse(frames, "INVALID_ARGUMENT", f"U+0000 in {path}")
    asked = ns.question("What?")
    asked.requester.CopyFrom(
        pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id="p1", display_name="Bo", relationship="friend")
    )
    for path in ("text", "requester.display_name", "requester.relationship"):
        ns.refuse(edited(asked, path, "a\0b"), "INVALID_ARGUMENT", f"U+0000 in {path} of a question")
    ns.expect_unharmed(kept, fact, "every day that it was part of was refused", sound)


@check("txt.invalid-utf8", "TXT-1")
def invalid_utf8(backend: BackendUnderTest) -> None:
    """Text that is not valid UTF-8 is refused."""
    (ns, kept), fact = backend.filled(), backend.fact()
    # The digest is that of the text with replacement characters: a backend that puts those in shows it.
    sound = ns.frames(ns.session(f"{fact.statement} \ufffd\ufffd\ufffd"))
    with backend.access("Ingest") as access:
        sent = [each.SerializeToString().replace("\ufffd".encode(), _CUT_SHORT) for each in with_access(sound, access)]
        _expect_any_refusal(partial(backend.wire.raw, "Ingest", *sent), "a turn")
    question = ns.question("What? \ufffd").SerializeToString().replace("\ufffd".encode(), _CUT_SHORT)
    _expect_any_refusal(partial(backend.wire.raw, "Search", question), "the text of a question")
    ns.expect_unharmed(kept, fact, "the day that it was part of was not valid UTF-8", sound)


def _expect_any_refusal(call: Callable[[], object], where: str) -> None:
    """Expect an error of almost any code, as the gRPC library may refuse the message first, with its own."""
    try:
        call()
    except RefusedError as error:
        if error.code in ("DATA_LOSS", "DEADLINE_EXCEEDED"):
            raise BrokenError(f"invalid UTF-8 in {where}: expected INVALID_ARGUMENT, got {error}") from error
        return
    raise BrokenError(f"invalid UTF-8 in {where}: the call was answered with OK")


BAD_TIMES = (
    "yesterday",
    "2025-01-04",
    "2025-01-04T09:00:00",
    "2025-13-04T09:00:00Z",
    "2025-01-04T25:00:00Z",
    "2025-02-29T09:00:00Z",
    "2025-01-04T09:61:00Z",
    "1735981200",
)
GOOD_TIMES = (
    "2025-01-04T09:00:00Z",
    "2025-01-04T09:00:00.5+00:00",
    "2025-01-04T09:00:00.123456789Z",
    "2025-01-04T14:30:00+05:30",
    "2025-01-03T23:00:00-10:00",
    "2025-01-04t09:00:00z",
    "2025-06-30T23:59:60Z",
    "2025-01-04T09:00:00.123456789012Z",
    "2025-01-04T09:00:00-00:00",
)


@check("txt.times", "TXT-3", "TXT-4", "TXT-5")
def times(backend: BackendUnderTest) -> None:
    """Times and dates of RFC 3339 are read, anything else is refused."""
    ns = backend.namespace()
    for number, time in enumerate(GOOD_TIMES):
        session = ns.session("Good morning.")
        session.started_at = session.ended_at = session.turns[0].said_at = time
        ns.commit(ns.frames(session, events=[pb.Event(event_id=f"e{number}", happened_at=time, text="Rain.")]))
        question = ns.question("What?")
        question.asked_at = time
        ns.expect_ok(partial(backend.search, question), f"asked_at {time}")
    sound = ns.frames(ns.session("Good morning."), events=[fixtures.event(backend.new_id(), "Rain.", ns.last_day + 1)])
    for time in BAD_TIMES:
        for path in ("session.started_at", "session.ended_at", "session.turns.said_at", "event.happened_at"):
            ns.refuse(edited_day(sound, path, time), "INVALID_ARGUMENT", f"{path} {time!r}")
        question = ns.question("What?")
        question.asked_at = time
        ns.refuse(question, "INVALID_ARGUMENT", f"asked_at {time!r}")
    for date in ("2025-02-30", "04.01.2025", "2025-1-4", "2025-01-04T09:00:00Z"):
        frames = edited_day(sound, "header.date", date)
        ns.refuse(frames, "INVALID_ARGUMENT", f"the date {date!r}")
    ns.commit(sound)


@check("txt.any-year", "TXT-3", "TXT-5", "SRC-10")
def any_year(backend: BackendUnderTest) -> None:
    """A life is held in its own time, whatever year and offset the backend's clock shows."""
    for year in ("1987", "2093"):
        ns, fact = backend.namespace(), backend.fact()
        session = ns.session(fact.statement)
        session.started_at = session.turns[0].said_at = f"{year}-05-04T09:00:00+02:00"
        session.ended_at = f"{year}-05-04T09:10:00+02:00"
        frames = edited_day(ns.frames(session), "header.date", f"{year}-05-04")
        ns.expect_ok(partial(backend.ingest, frames), f"a day of {year}")
        ns.note(frames)
        # The last one is the same day: an hour later, though as text it is before nine o'clock.
        for ns.asked_at in (f"{year}-05-05T08:00:00+02:00", f"{year}-05-04T08:00:00Z"):
            for item in ns.items(fact):
                if item.time[:10] in dates_of_the_clock():
                    raise BrokenError(f"a turn of {year} has the time {item.time!r}: that of the own clock")


def dates_of_the_clock() -> set[str]:
    """Return the real date here and wherever the backend's clock may stand."""
    now = datetime.now(UTC)
    return {(now + timedelta(days=days)).date().isoformat() for days in (-1, 0, 1)}
