"""ING: a day is taken whole, once, in order, checked, and is there when Ingest returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Literal

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import days
from memarena.conformance.check import check
from memarena.conformance.days import Fact
from memarena.conformance.errors import BrokenError
from memarena.conformance.subject import Life, Subject, changed, differs, expect_refused, shows, with_access

_REPLAYS = 10
_READY_DAYS = 5
_UNDERWAY_S = (0.0, 0.1, 0.3)
"""How long streams are left open before they are cancelled: some before their frames have arrived, some after."""

Edit = tuple[str, int, Callable[[pb.IngestRequest], object]]
"""Path of a field, place of its frame in :func:`_full_day`, and what empties it."""


def _full_day(life: Life, text: str) -> list[pb.IngestRequest]:
    """Header, one session, one event, trailer."""
    event = days.event(life.subject.new_id(), "It rained all day.", life.last_day + 1)
    with life.subject.access("Ingest") as access:  # revoked before it is sent: only its form matters here
        return with_access(life.frames(life.session(text), events=[event]), access)


REQUIRED: tuple[Edit, ...] = (
    ("header.namespace", 0, lambda f: f.header.ClearField("namespace")),
    ("header.date", 0, lambda f: f.header.ClearField("date")),
    ("header.batch_id", 0, lambda f: f.header.ClearField("batch_id")),
    ("header.owner", 0, lambda f: f.header.ClearField("owner")),
    ("header.owner.participant_id", 0, lambda f: f.header.owner.ClearField("participant_id")),
    ("header.owner.display_name", 0, lambda f: f.header.owner.ClearField("display_name")),
    ("header.owner.role", 0, lambda f: f.header.owner.ClearField("role")),
    ("header.model_access.base_url", 0, lambda f: f.header.model_access.ClearField("base_url")),
    ("header.model_access.token", 0, lambda f: f.header.model_access.ClearField("token")),
    ("header.model_access.models.name", 0, lambda f: f.header.model_access.models[0].ClearField("name")),
    ("header.model_access.models.role", 0, lambda f: f.header.model_access.models[0].ClearField("role")),
    ("session.session_id", 1, lambda f: f.session.ClearField("session_id")),
    ("session.participants", 1, lambda f: f.session.ClearField("participants")),
    ("session.participants.participant_id", 1, lambda f: f.session.participants[1].ClearField("participant_id")),
    ("session.participants.display_name", 1, lambda f: f.session.participants[1].ClearField("display_name")),
    ("session.participants.role", 1, lambda f: f.session.participants[1].ClearField("role")),
    ("session.started_at", 1, lambda f: f.session.ClearField("started_at")),
    ("session.ended_at", 1, lambda f: f.session.ClearField("ended_at")),
    ("session.turns.turn_id", 1, lambda f: f.session.turns[0].ClearField("turn_id")),
    ("session.turns.speaker_id", 1, lambda f: f.session.turns[0].ClearField("speaker_id")),
    ("session.turns.said_at", 1, lambda f: f.session.turns[0].ClearField("said_at")),
    ("event.event_id", 2, lambda f: f.event.ClearField("event_id")),
    ("event.happened_at", 2, lambda f: f.event.ClearField("happened_at")),
    ("event.text", 2, lambda f: f.event.ClearField("text")),
)


def _without_trailer_field(name: Literal["digest_version", "digest"], frame: pb.IngestRequest) -> None:
    frame.trailer.ClearField(name)


@check("ing.required", "GEN-3", "ERR-2", title="each REQUIRED field of a day that is missing is refused by its name")
def required(subject: Subject) -> None:
    life, fact = subject.life(), subject.fact()
    sound = _full_day(life, fact.statement)
    for path, place, edit in REQUIRED:
        frames = days.sealed(changed(sound[:-1], {place: edit}))
        expect_refused(partial(subject.wire.ingest, frames), "INVALID_ARGUMENT", f"a day without {path}", field=path)
    names: tuple[Literal["digest_version", "digest"], ...] = ("digest_version", "digest")
    for name in names:
        frames = changed(sound, {3: partial(_without_trailer_field, name)})
        expect_refused(
            partial(subject.wire.ingest, frames),
            "INVALID_ARGUMENT",
            f"a trailer without {name}",
            field=f"trailer.{name}",
        )
    life.commit(life.frames(life.session(fact.statement)))


@check("ing.empty-day", "ING-1", title="a day on which nothing happened is taken, also as the first")
def empty_day(subject: Subject) -> None:
    life, fact = subject.life(), subject.fact()
    life.commit(life.frames())
    if life.search("Anything?").items:
        raise BrokenError("a namespace with one empty day returns items")
    life.tell(fact)
    life.commit(life.frames())
    life.expect_visible(fact)


@check(
    "ing.frame-order",
    "ING-2",
    "ING-5",
    title="frames in another order than header, sessions, events, trailer are refused",
)
def frame_order(subject: Subject) -> None:
    life, kept, fact = subject.life(), subject.fact(), subject.fact()
    life.tell(kept)
    sound = life.frames(
        life.session(fact.statement), events=[days.event(subject.new_id(), "It rained.", life.last_day + 1)]
    )
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
        expect_refused(partial(subject.ingest, frames), "INVALID_ARGUMENT", what)
    life.expect_visible(kept)
    life.expect_hidden(fact, "every day that it was part of was refused")
    life.commit(sound)
    life.expect_visible(fact)


@check("ing.split-session", "ING-3", "DIG-5", title="a session that is split over frames is one session")
def split_session(subject: Subject) -> None:
    life = subject.life()
    facts = [subject.fact() for _ in range(3 if subject.keeps_words else 1)]
    whole = life.session(*(fact.statement for fact in facts), "Good to know.", "Good night.")
    opening = pb.Session()
    opening.CopyFrom(whole)
    del opening.turns[1:]
    rest = [pb.Session(session_id=whole.session_id, continuation=True, turns=[turn]) for turn in whole.turns[1:]]
    empty = pb.Session(session_id=whole.session_id, continuation=True)
    life.commit(life.frames(opening, *rest[:1], empty, *rest[1:]))
    life.expect_visible(*facts)


@check("ing.bad-continuation", "ING-3", title="frames that do not continue the session before them are refused")
def bad_continuation(subject: Subject) -> None:
    life = subject.life()
    one, other = life.session("Good morning."), life.session("Good evening.")
    more = pb.Session(session_id=one.session_id, continuation=True)
    more.turns.add(turn_id=subject.new_id(), speaker_id=days.OWNER.participant_id, text="More.", said_at=days.moment(0))
    with_place, again = pb.Session(), pb.Session()
    with_place.CopyFrom(more)
    with_place.place = "Harbour"
    again.CopyFrom(one)
    again.turns[0].turn_id = subject.new_id()
    faults: dict[str, list[pb.Session]] = {
        "a continuation of no session": [more, one],
        "a continuation of another session than the one before": [one, other, more],
        "a continuation that sets place": [one, with_place],
        "a session that is opened twice in a day": [one, other, again],
    }
    for what, sessions in faults.items():
        expect_refused(partial(subject.ingest, life.frames(*sessions)), "INVALID_ARGUMENT", what)
    life.commit(life.frames(one, more, other))


@check(
    "ing.session-rules", "ING-4", title="who takes part, who speaks and when it ends must be sound; little is needed"
)
def session_rules(subject: Subject) -> None:
    life = subject.life()

    def session_with(edit: Callable[[pb.Session], object]) -> pb.Session:
        session = life.session("Good morning.")
        edit(session)
        return session

    faults: dict[str, Callable[[pb.Session], object]] = {
        "a session without participants": lambda s: s.ClearField("participants"),
        "a participant who is there twice": lambda s: s.participants.append(days.FRIEND),
        "a speaker who is not among the participants": lambda s: setattr(s.turns[0], "speaker_id", "nobody"),
        "a session that ends before it starts": lambda s: setattr(s, "ended_at", days.moment(0, -5)),
    }
    for what, edit in faults.items():
        expect_refused(partial(subject.ingest, life.frames(session_with(edit))), "INVALID_ARGUMENT", what)
    sound: tuple[Callable[[pb.Session], object], ...] = (
        lambda s: s.ClearField("turns"),
        lambda s: s.turns[0].ClearField("text"),
        lambda s: setattr(s, "ended_at", s.started_at),
        _among_others,
    )
    life.commit(life.frames(*(session_with(edit) for edit in sound)))


def _among_others(session: pb.Session) -> None:
    """The owner is not among the participants; an assistant is."""
    del session.participants[:]
    session.participants.extend([days.FRIEND, days.AIDE])
    session.turns[0].speaker_id = days.AIDE.participant_id


@check(
    "ing.cancelled",
    "ING-5",
    "ING-11",
    title="a stream that is cancelled half-way leaves nothing, and can be sent again",
)
def cancelled(subject: Subject) -> None:
    life, kept = subject.life(), subject.fact()
    life.tell(kept)
    life.expect_visible(kept)
    for underway_s in _UNDERWAY_S:
        fact = subject.fact()
        whole = life.frames(life.session(fact.statement), life.session("Good night."))
        with subject.access("Ingest"):
            open_call = subject.wire.open_ingest(whole[:2], subject.wire.timeout_s)
            open_call.wait_until_sent()
            time.sleep(underway_s)
            open_call.cancel()
        time.sleep(subject.patience.notice_s)
        life.expect_hidden(fact, "the stream that it came in was cancelled")
        if life.commit(whole).replayed:
            raise BrokenError("a day whose stream was cancelled half-way counts as committed")
        life.expect_visible(fact)


@check("ing.no-trailer", "ING-5", "ING-12", title="a stream that ends without a trailer is refused and leaves nothing")
def no_trailer(subject: Subject) -> None:
    life, kept, fact = subject.life(), subject.fact(), subject.fact()
    life.tell(kept)
    whole = life.frames(life.session(fact.statement))
    expect_refused(
        partial(subject.ingest, whole[:-1]), "INVALID_ARGUMENT", "a stream without a trailer", field="trailer"
    )
    life.expect_visible(kept)
    life.expect_hidden(fact, "its day had no trailer")
    life.commit(whole)
    life.expect_visible(fact)


def _refused_trailer(subject: Subject, code: str, edits: dict[str, Callable[[pb.DayTrailer], object]]) -> None:
    """Each altered trailer is refused, nothing of the day shows, and the day is taken with its own trailer."""
    life, kept, fact = subject.life(), subject.fact(), subject.fact()
    life.tell(kept)
    whole = life.frames(life.session(fact.statement), events=[days.event(subject.new_id(), "It rained.", 1)])
    for what, edit in edits.items():
        frames = changed(whole, {3: partial(_edit_trailer, edit)})
        expect_refused(partial(subject.ingest, frames), code, what)
    life.expect_visible(kept)
    life.expect_hidden(fact, "every day that it was part of was refused")
    life.commit(whole)
    life.expect_visible(fact)


def _edit_trailer(edit: Callable[[pb.DayTrailer], object], frame: pb.IngestRequest) -> None:
    edit(frame.trailer)


@check("ing.digest-checked", "ING-6", title="a digest that does not match is DATA_LOSS and leaves nothing")
def digest_checked(subject: Subject) -> None:
    _refused_trailer(
        subject,
        "DATA_LOSS",
        {
            "a digest with one bit changed": lambda t: setattr(t, "digest", bytes([t.digest[0] ^ 1]) + t.digest[1:]),
            "a digest of zeros": lambda t: setattr(t, "digest", bytes(32)),
        },
    )


@check("ing.counts-checked", "ING-6", "DIG-8", title="counts that do not match are DATA_LOSS and leave nothing")
def counts_checked(subject: Subject) -> None:
    _refused_trailer(
        subject,
        "DATA_LOSS",
        {
            "one session too many": lambda t: setattr(t, "session_count", t.session_count + 1),
            "one turn too many": lambda t: setattr(t, "turn_count", t.turn_count + 1),
            "one turn too few": lambda t: setattr(t, "turn_count", t.turn_count - 1),
            "no event": lambda t: t.ClearField("event_count"),
        },
    )


@check("ing.digest-version", "ING-6", title="an undeclared digest version and a digest of another length are refused")
def digest_version(subject: Subject) -> None:
    unknown = max(subject.described.digest_versions, default=1) + 1
    life = subject.life()
    whole = life.frames(life.session("Good morning."))
    edits: dict[str, Callable[[pb.DayTrailer], object]] = {
        f"digest_version {unknown}": lambda t: setattr(t, "digest_version", unknown),
        "a digest of 31 bytes": lambda t: setattr(t, "digest", t.digest[:31]),
        "a digest of 33 bytes": lambda t: setattr(t, "digest", t.digest + b"\0"),
    }
    for what, edit in edits.items():
        frames = changed(whole, {2: partial(_edit_trailer, edit)})
        expect_refused(partial(subject.ingest, frames), "INVALID_ARGUMENT", what)
    life.commit(whole)


@check("ing.ready", "ING-7", title="what was ingested is found by the very next call")
def ready(subject: Subject) -> None:
    life = subject.life()
    for _ in range(_READY_DAYS):
        fact = subject.fact()
        life.tell(fact)
        response = life.search(fact.question)
        if not shows(response.items, fact, verbatim=subject.keeps_words):
            raise BrokenError(f"day {life.last_day} was answered with OK, but the next Search does not find it")


@check("ing.replay", "ING-8", "ING-13", title="ten replays of a day change nothing, also when later days have come")
def replay(subject: Subject) -> None:
    life, fact = subject.life(), subject.fact()
    first = life.frames(life.session(fact.statement))
    life.commit(first)
    life.items(fact)
    _replay(life, first, fact)
    later = subject.fact()
    life.tell(later)
    life.expect_visible(later)
    _replay(life, first, fact)
    life.expect_visible(later)


def _replay(life: Life, frames: list[pb.IngestRequest], fact: Fact) -> None:
    """Send a committed day again and again: OK, said to be a replay, and without any effect."""
    subject = life.subject
    before = life.search(fact.question).items
    for number in range(_REPLAYS):
        response = life.expect_ok(partial(subject.ingest, frames), f"replay {number + 1} of a day")
        if not response.replayed:
            raise BrokenError(f"replay {number + 1} of a day is not said to be one")
        if response.visible_through_day != life.last_day:
            raise BrokenError(
                f"a replay says visible_through_day {response.visible_through_day}; the last day is {life.last_day}"
            )
    if _stable(subject) and differs(before, life.search(fact.question).items):
        raise BrokenError("replays of a day changed what a Search returns")


def _stable(subject: Subject) -> bool:
    return not subject.has(pb.CAPABILITY_STATEFUL_SEARCH)


@check("ing.conflict", "ING-9", "ING-13", title="a known batch id with another digest is refused and changes nothing")
def conflict(subject: Subject) -> None:
    life, fact, other, later = subject.life(), subject.fact(), subject.fact(), subject.fact()
    batch = subject.new_id()
    life.commit(life.frames(life.session(fact.statement), batch_id=batch))
    life.expect_visible(fact)
    clash = life.frames(life.session(other.statement, day=0), day=0, batch_id=batch)
    expect_refused(partial(subject.ingest, clash), "ALREADY_EXISTS", "a known batch id with another digest")
    life.expect_visible(fact)
    life.expect_hidden(other, "its day was in conflict with a committed one")
    life.tell(later)
    expect_refused(partial(subject.ingest, clash), "ALREADY_EXISTS", "the same after a later day")
    on_top = life.frames(life.session(other.statement), batch_id=batch)
    expect_refused(partial(subject.ingest, on_top), "ALREADY_EXISTS", "a known batch id for the next day")
    life.expect_visible(later)
    life.expect_hidden(other, "its day was in conflict with a committed one")


@check("ing.day-order", "ING-10", title="days rise: going back is refused, gaps are allowed")
def day_order(subject: Subject) -> None:
    life, fact, other = subject.life(), subject.fact(), subject.fact()
    life.tell(fact, day=3)
    life.expect_visible(fact)
    for day in (2, 0, 3):
        back = life.frames(life.session(other.statement, day=day), day=day)
        expect_refused(partial(subject.ingest, back), "FAILED_PRECONDITION", f"a new batch for day {day} after day 3")
    life.expect_visible(fact)
    life.expect_hidden(other, "its day lies before the last committed one")
    life.tell(other, day=7)
    life.expect_visible(other)


@check("ing.retry", "ING-10", title="a batch that failed can be sent again, with the same or other content")
def retry(subject: Subject) -> None:
    life, fact, other = subject.life(), subject.fact(), subject.fact()
    batch = subject.new_id()
    nameless = pb.Event(happened_at=days.moment(0), text="It rained.")
    first = life.frames(life.session(fact.statement), events=[nameless], batch_id=batch)
    expect_refused(partial(subject.ingest, first), "INVALID_ARGUMENT", "an event without an id")
    second = life.frames(life.session(other.statement), batch_id=batch)
    if life.commit(second).replayed:
        raise BrokenError("a batch that was never committed counts as replayed")
    life.expect_visible(other)
    life.expect_hidden(fact, "its day was refused")
