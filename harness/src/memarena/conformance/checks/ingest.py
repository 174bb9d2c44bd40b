"""ING: a day is ingested whole, once, in order, checked, and is there when Ingest returns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import differs, expect_refused, mentions, quoted, shows, with_access
from memarena.conformance.fixtures import Fact, edited, edited_day
from memarena.conformance.wire import RefusedError

_REPLAYS = 10
_READY_DAYS = 5
_UNDERWAY_S = (0.0, 0.3)
"""How long streams are left open before they are cancelled: some before their frames have arrived, some after."""


def _full_day(ns: NamespaceFixture, text: str) -> list[pb.IngestRequest]:
    """Return a day with model access: header, one session, one event, trailer."""
    event = fixtures.event(ns.backend.new_id(), "It rained all day.", ns.last_day + 1)
    with ns.backend.access("Ingest") as access:  # revoked before it is sent: only its form matters here
        return with_access(ns.frames(ns.session(text), events=[event]), access)


REQUIRED = (
    *(f"header.{name}" for name in ("namespace", "date", "batch_id", "owner")),
    *(f"header.owner.{name}" for name in ("participant_id", "display_name", "role")),
    *(f"header.model_access.{name}" for name in ("base_url", "token", "models.name", "models.role")),
    *(f"session.{name}" for name in ("session_id", "participants", "started_at", "ended_at")),
    *(f"session.participants.{name}" for name in ("participant_id", "display_name", "role")),
    *(f"session.turns.{name}" for name in ("turn_id", "speaker_id", "said_at")),
    *(f"event.{name}" for name in ("event_id", "happened_at", "text")),
    *(f"trailer.{name}" for name in ("digest_version", "digest")),
)
"""Paths of the REQUIRED fields of a day."""


@check("ing.required", "GEN-3", "ERR-2")
def required(backend: BackendUnderTest) -> None:
    """Each REQUIRED field of a day that is missing is refused by its name."""
    ns, fact = backend.namespace(), backend.fact()
    sound = _full_day(ns, fact.statement)
    for path in REQUIRED:
        frames = edited_day(sound, path, seal=not path.startswith("trailer"))
        expect_refused(partial(backend.wire.ingest, frames), "INVALID_ARGUMENT", f"a day without {path}", field=path)
    ns.commit(ns.frames(ns.session(fact.statement)))


@check("ing.empty-day", "ING-1", "ING-6")
def empty_day(backend: BackendUnderTest) -> None:
    """A day on which nothing happened is accepted, also as the first."""
    ns, fact = backend.namespace(), backend.fact()
    wrong = edited_day(ns.frames(), "trailer.digest", bytes(32), seal=False)
    ns.refuse(wrong, "DATA_LOSS", "an empty day with a digest of zeros")
    ns.commit(ns.frames())
    if ns.search("Anything?").items:
        raise BrokenError("a namespace with one empty day returns items")
    ns.add(fact)
    ns.commit(ns.frames())
    ns.expect_visible(fact)


@check("ing.frame-order", "ING-2", "ING-5", "ERR-1", "ERR-6", "ERR-8")
def frame_order(backend: BackendUnderTest) -> None:
    """Frames in another order than header, sessions, events, trailer are refused."""
    (ns, kept), fact = backend.filled(), backend.fact()
    sound = ns.frames(ns.session(fact.statement), events=[fixtures.event(backend.new_id(), "Rain.", ns.last_day + 1)])
    head, session, event, last = sound
    orders = {
        "a stream without frames": [],
        "a stream that begins with a session": [session, event, last],
        "a stream that is nothing but a trailer": [last],
        "a second header": [head, head, session, event, last],
        "a header after the session": [head, session, head, event, last],
        "a session after an event": [head, event, session, last],
        "an empty frame": [head, session, pb.IngestRequest(), event, last],
        "a frame after the trailer": [*sound, event],
        "a second trailer": [*sound, last],
    }
    for what, frames in orders.items():
        ns.refuse(frames, "INVALID_ARGUMENT", what)
    ns.expect_unharmed(kept, fact, "every day that it was part of was refused", sound)


@check("ing.bad-continuation", "ING-3", "ING-4")
def bad_continuation(backend: BackendUnderTest) -> None:
    """Frames that do not continue the session before them are refused."""
    ns = backend.namespace()
    whole, other = ns.session("Good morning."), ns.session("Good evening.")
    more = pb.Session(session_id=whole.session_id, continuation=True, turns=whole.turns)
    more.turns[0].turn_id = backend.new_id()
    faults: dict[str, list[pb.Session]] = {
        "a continuation of no session": [more, whole],
        "a continuation of another session than the one before": [whole, other, more],
        "a continuation with a speaker who takes no part": [whole, edited(more, "turns.speaker_id", "stranger")],
        "a session that is opened twice in a day": [whole, other, edited(whole, "turns.turn_id", backend.new_id())],
    }
    for name in ("participants", "started_at", "ended_at", "modality", "place", "group"):
        value = getattr(whole, name) or "Harbour"
        more_than_turns = edited(more, name, list(value) if name == "participants" else value)
        faults[f"a continuation that sets {name}"] = [whole, more_than_turns]
    for what, sessions in faults.items():
        ns.refuse(ns.frames(*sessions), "INVALID_ARGUMENT", what)
    ns.commit(ns.frames(whole, more, other))


@check("ing.session-rules", "ING-4")
def session_rules(backend: BackendUnderTest) -> None:
    """Who takes part, who speaks and when it ends must be sound; little is needed."""
    ns, friend = backend.namespace(), fixtures.FRIEND
    for what, path, value in (
        ("a session without participants", "participants", None),
        ("a participant who is there twice", "participants", [fixtures.OWNER, friend, friend]),
        ("a speaker who is not among the participants", "turns.speaker_id", "stranger"),
        ("a session that ends before it starts", "ended_at", fixtures.moment(0, -5)),
    ):
        frames = ns.frames(edited(ns.session("Good morning."), path, value))
        ns.refuse(frames, "INVALID_ARGUMENT", what)
    # The owner need not be among the participants; an assistant may be.
    among_others = edited(ns.session("Good morning."), "participants", [friend, fixtures.AIDE])
    ns.commit(
        ns.frames(
            edited(ns.session("Good morning."), "turns"),
            edited(ns.session("Good morning."), "turns.text"),
            edited(ns.session("Good morning."), "ended_at", fixtures.moment(0)),
            edited(among_others, "turns.speaker_id", fixtures.AIDE.participant_id),
        )
    )


@check("ing.offsets", "ING-4", "TXT-3")
def offsets(backend: BackendUnderTest) -> None:
    """Times are compared as moments, whatever their offsets."""
    ns = backend.namespace()

    def lasting(started_at: str, ended_at: str) -> pb.Session:
        session = ns.session("Good evening.")
        session.started_at, session.ended_at, session.turns[0].said_at = started_at, ended_at, started_at
        return session

    for later, started_at, ended_at in (
        (False, "2025-01-01T09:00:00+00:00", "2025-01-01T10:00:00+02:00"),
        (False, "2025-01-01T22:00:00Z", "2025-01-02T06:00:00+09:00"),
        (False, "2025-01-01T09:00:00.5Z", "2025-01-01T09:00:00.25Z"),
        (False, "2025-01-01T09:00:00+00:00", "2025-01-01T14:15:00+05:30"),
        (True, "2025-01-01T23:30:00+02:00", "2025-01-01T22:00:00+00:00"),
        (True, "2025-01-01T09:00:00+00:00", "2025-01-01T05:45:00-03:30"),
        (True, "2025-01-01T05:00:00+09:00", "2024-12-31T21:00:00Z"),
        (True, "2025-01-01T09:00:00.25+00:00", "2025-01-01T09:00:00.5Z"),
    ):
        whole = ns.frames(lasting(started_at, ended_at))
        what = f"a session from {started_at} to {ended_at}, which is {'later' if later else 'earlier'},"
        if later:
            ns.expect_ok(partial(backend.ingest, whole), what)
            ns.note(whole)
        else:
            ns.refuse(whole, "INVALID_ARGUMENT", what)


@check("ing.cancelled", "ING-5", "ING-11")
def cancelled(backend: BackendUnderTest) -> None:
    """A stream that is cancelled half-way leaves nothing, and can be sent again."""
    ns, kept = backend.filled()
    ns.expect_visible(kept)
    for underway_s in _UNDERWAY_S:
        fact = backend.fact()
        whole = ns.frames(ns.session(fact.statement), ns.session("Good night."))
        with backend.access("Ingest"):
            open_call = backend.wire.open_ingest(whole[:2], backend.wire.timeout_s)
            open_call.wait_until_sent()
            time.sleep(underway_s)
            _not_shown_early(ns, fact)
            open_call.cancel()
        time.sleep(backend.patience.notice_s)
        ns.expect_hidden(fact, "the stream that it came in was cancelled")
        if ns.commit(whole).replayed:
            raise BrokenError("a day whose stream was cancelled half-way counts as committed")
        ns.expect_visible(fact)
    whole, facts = cancelled_behind_the_trailer(ns)
    time.sleep(backend.patience.notice_s)
    expect_whole_or_none(ns, whole, facts)


def cancelled_behind_the_trailer(ns: NamespaceFixture) -> tuple[list[pb.IngestRequest], list[Fact]]:
    """Send a day, and cancel its stream before it is half-closed."""
    backend, facts = ns.backend, [ns.backend.fact() for _ in range(2 if ns.backend.keeps_words else 1)]
    whole = ns.frames(*(ns.session(fact.statement) for fact in facts))
    with backend.access("Ingest") as access:
        open_call = backend.wire.open_ingest(with_access(whole, access), backend.wire.timeout_s)
        open_call.wait_until_sent()
        time.sleep(backend.patience.notice_s)
        open_call.cancel()
        backend.models.abandon(access.token)
    return whole, facts


def expect_whole_or_none(
    ns: NamespaceFixture, whole: list[pb.IngestRequest], facts: list[Fact], since: str = ""
) -> None:
    """Expect a day that is committed whole or not at all. ``since``: how the backend ended afterwards, if it did."""
    backend = ns.backend
    what, shown = f"day {ns.last_day + 1}, whose stream was cancelled after the trailer{since},", True
    try:
        backend.retried(partial(backend.search, ns.question("Anything?", as_of_day=ns.last_day + 1)))
    except RefusedError as error:
        shown = error.code != "FAILED_PRECONDITION"
    if since and not shown:
        for fact in facts:
            ns.expect_hidden(fact, f"Search as of {what} is refused")
    if not ns.commit(whole).replayed and shown:
        raise BrokenError(f"Search as of {what} works, and the batch is not known")
    ns.expect_visible(*facts)
    ns.replay(whole, f"a replay of {what}")


def _not_shown_early(ns: NamespaceFixture, fact: Fact) -> None:
    """Raise BrokenError if a Search during the Ingest, which may be refused or wait (GEN-6), returns the fact."""
    try:
        items = ns.backend.search(ns.question(fact.question), ns.backend.patience.deadline_s).items
    except RefusedError:
        return
    if mentions(items, fact):
        raise BrokenError(f"{quoted(fact)} is returned while the frames of its day arrive")


@check("ing.no-trailer", "ING-5", "ING-12")
def no_trailer(backend: BackendUnderTest) -> None:
    """A stream that ends without a trailer is refused and leaves nothing."""
    (ns, kept), fact = backend.filled(), backend.fact()
    whole = ns.frames(ns.session(fact.statement))
    ns.refuse(whole[:-1], "INVALID_ARGUMENT", "a stream without a trailer", field="trailer")
    ns.expect_unharmed(kept, fact, "its day had no trailer", whole)


def _refused_trailers(backend: BackendUnderTest, code: str, edits: Mapping[str, tuple[str, object]]) -> None:
    """Each altered trailer is refused, nothing of the day shows, and the day is accepted with its own trailer."""
    (ns, kept), fact = backend.filled(), backend.fact()
    whole = ns.frames(ns.session(fact.statement), events=[fixtures.event(backend.new_id(), "It rained.", 1)])
    for what, (name, value) in edits.items():
        ns.refuse(edited_day(whole, f"trailer.{name}", value, seal=False), code, what)
    ns.expect_unharmed(kept, fact, "every day that it was part of was refused", whole)


@check("ing.digest-checked", "ING-6", "DIG-8")
def digest_checked(backend: BackendUnderTest) -> None:
    """A digest and counts that do not match are DATA_LOSS and leave nothing."""
    edits: dict[str, tuple[str, object]] = {
        "a digest with one bit changed": ("digest", lambda digest: bytes([digest[0] ^ 1]) + digest[1:]),
        "a digest with its last bit changed": ("digest", lambda digest: digest[:-1] + bytes([digest[-1] ^ 1])),
        "a digest of zeros": ("digest", bytes(32)),
        "one session too many": ("session_count", 2),
        "one turn too many": ("turn_count", 2),
        "one turn too few": ("turn_count", 0),
        "no event": ("event_count", 0),
    }
    _refused_trailers(backend, "DATA_LOSS", edits)


@check("ing.digest-version", "ING-6")
def digest_version(backend: BackendUnderTest) -> None:
    """An undeclared digest version and a digest of another length are refused."""
    unknown = max(backend.described.digest_versions, default=1) + 1
    edits: dict[str, tuple[str, object]] = {
        f"digest_version {unknown}": ("digest_version", unknown),
        "a digest of 31 bytes": ("digest", bytes(31)),
        "a digest of 33 bytes": ("digest", lambda digest: digest + b"\0"),
    }
    _refused_trailers(backend, "INVALID_ARGUMENT", edits)


@check("ing.ready", "ING-7")
def ready(backend: BackendUnderTest) -> None:
    """What was ingested is returned by the very next call."""
    ns = backend.namespace()
    for _ in range(_READY_DAYS):
        first, last = backend.fact(), backend.fact()
        # Where facts are extracted, a second one may replace the first.
        morning = first.statement if backend.keeps_words else "Good morning."
        ns.commit(ns.frames(ns.session(morning), ns.session("Good day."), ns.session(last.statement)))
        # The last session first: it is the one that is still missing where a day is worked on after the call.
        asked = (("last", last), ("first", first)) if backend.keeps_words else (("last", last),)
        for which, fact in asked:
            if not shows(ns.search(fact.question).items, fact, verbatim=backend.keeps_words):
                raise BrokenError(
                    f"the Search after OK for day {ns.last_day} lacks {quoted(fact)} of its {which} session of three"
                )


@check("ing.replay", "ING-8", "ING-13")
def replay(backend: BackendUnderTest) -> None:
    """Ten replays of a day change nothing, also when later days have come."""
    ns, fact = backend.namespace(), backend.fact()
    first = ns.frames(ns.session(fact.statement))
    ns.commit(first)
    ns.items(fact)
    _replay(ns, first, fact)
    later = backend.fact()
    ns.add(later)
    ns.expect_visible(later)
    _replay(ns, first, fact)
    ns.expect_visible(later)


def _replay(ns: NamespaceFixture, frames: list[pb.IngestRequest], fact: Fact) -> None:
    """Send a committed day again and again: nothing changes."""
    backend, before = ns.backend, ns.search(fact.question).items
    for number in range(_REPLAYS):
        ns.replay(frames, f"replay {number + 1} of a day")
    if requirements.stable_search(backend) is None and differs(before, ns.search(fact.question).items):
        raise BrokenError("replays of a day changed what a Search returns")


@check("ing.conflict", "ING-9", "ING-13")
def conflict(backend: BackendUnderTest) -> None:
    """A known batch id with another digest is refused and changes nothing."""
    ns, fact, other, later = backend.namespace(), backend.fact(), backend.fact(), backend.fact()
    batch = backend.new_id()
    ns.commit(ns.frames(ns.session(fact.statement), batch_id=batch))
    ns.expect_visible(fact)
    clash = ns.frames(ns.session(other.statement, day=0), day=0, batch_id=batch)
    ns.refuse(clash, "ALREADY_EXISTS", "a known batch id with another digest")
    ns.expect_visible(fact)
    ns.expect_hidden(other, "its day was in conflict with a committed one")
    ns.add(later)
    ns.refuse(clash, "ALREADY_EXISTS", "the same after a later day")
    on_top = ns.frames(ns.session(other.statement), batch_id=batch)
    ns.refuse(on_top, "ALREADY_EXISTS", "a known batch id for the next day")
    ns.expect_visible(later)
    ns.expect_hidden(other, "its day was in conflict with a committed one")


@check("ing.day-order", "ING-10")
def day_order(backend: BackendUnderTest) -> None:
    """Days rise: going back is refused, gaps are allowed."""
    ns, fact, other = backend.namespace(), backend.fact(), backend.fact()
    ns.add(fact, day=3)
    ns.expect_visible(fact)
    for day in (2, 0, 3):
        back = ns.frames(ns.session(other.statement, day=day), day=day)
        ns.refuse(back, "FAILED_PRECONDITION", f"a new batch for day {day} after day 3")
    later = ns.frames(ns.session(other.statement, day=7), day=7)
    ns.expect_unharmed(fact, other, "its day lies before the last committed one", later)


@check("ing.retry", "ING-10", "ING-5")
def retry(backend: BackendUnderTest) -> None:
    """A batch that failed can be sent again, with the same or other content."""
    ns, fact, other = backend.namespace(), backend.fact(), backend.fact()
    batch = backend.new_id()
    nameless = pb.Event(happened_at=fixtures.moment(0), text="It rained.")
    first = ns.frames(ns.session(fact.statement), events=[nameless], batch_id=batch)
    ns.refuse(first, "INVALID_ARGUMENT", "an event without an id")
    second = ns.frames(ns.session(other.statement), batch_id=batch)
    if ns.commit(second).replayed:
        raise BrokenError("a batch that was never committed counts as replayed")
    ns.expect_visible(other)
    ns.expect_hidden(fact, "its day was refused")
    damaged, good, batch = backend.fact(), backend.fact(), backend.new_id()
    first = ns.frames(ns.session(damaged.statement), ns.session("Good night."), batch_id=batch)
    first[-1].trailer.digest = bytes(32)
    ns.refuse(first, "DATA_LOSS", "a digest of zeros")
    if ns.commit(ns.frames(ns.session(good.statement), batch_id=batch)).replayed:
        raise BrokenError("a batch that was DATA_LOSS counts as replayed")
    ns.expect_visible(good)
    ns.expect_hidden(damaged, "its day was DATA_LOSS, and the batch was sent again without it")
