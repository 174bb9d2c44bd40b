"""FGT: what was to be forgotten is never found again, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import expect_refused, mentions, quoted, shows
from memarena.conformance.fixtures import Fact


@check(
    "fgt.undeclared", "FGT-1", "ERR-4", title="without FORGET the RPC is UNIMPLEMENTED", applies=requirements.no_forget
)
def undeclared(backend: BackendUnderTest) -> None:
    request = pb.ForgetRequest(namespace=backend.new_id(), subject="Omar")
    expect_refused(partial(backend.wire.forget, request), "UNIMPLEMENTED", "Forget")


@check(
    "fgt.required",
    "FGT-1",
    "GEN-3",
    "ERR-5",
    title="a Forget without namespace or target is refused by name, and a stranger is NOT_FOUND",
    applies=requirements.forget,
)
def required(backend: BackendUnderTest) -> None:
    ns = backend.namespace()
    request = pb.ForgetRequest(namespace=ns.namespace, subject="Omar")
    expect_refused(partial(backend.wire.forget, request), "NOT_FOUND", "Forget in a namespace that never was")
    ns.tell(backend.fact())
    for what, field, wrong in (
        ("Forget without a namespace", "namespace", pb.ForgetRequest(subject="Omar")),
        ("Forget without a target", None, pb.ForgetRequest(namespace=ns.namespace)),
        ("Forget of a session without an id", "session_id", pb.ForgetRequest(namespace=ns.namespace, session_id="")),
        ("Forget of a subject without a name", "subject", pb.ForgetRequest(namespace=ns.namespace, subject="")),
    ):
        expect_refused(partial(backend.wire.forget, wrong), "INVALID_ARGUMENT", what, field=field)


def _forget(ns: NamespaceFixture, request: pb.ForgetRequest) -> None:
    request.namespace = ns.namespace
    ns.expect_ok(partial(ns.backend.wire.forget, request), "Forget")


def _gone(
    ns: NamespaceFixture, days: Sequence[list[pb.IngestRequest]], gone: Sequence[Fact], kept: Sequence[Fact]
) -> None:
    """After a Forget: the facts are found neither now, nor as of an earlier day, nor after a replay; the others are."""
    backend, why = ns.backend, "it was to be forgotten"
    ns.expect_visible(*kept)
    for fact in gone:
        ns.expect_hidden(fact, why)
    for frames in days:
        if not ns.expect_ok(partial(backend.ingest, frames), "a replay after a Forget").replayed:
            raise BrokenError("a replay after a Forget is not said to be one")
    ns.expect_visible(*kept)
    for fact in gone:
        ns.expect_hidden(fact, f"{why}, and its day was only replayed")
        if backend.has(pb.CAPABILITY_TIME_TRAVEL):
            ns.expect_hidden(fact, f"{why}, also as of an earlier day", as_of_day=0)
    if backend.has(pb.CAPABILITY_ANSWER):
        received = ns.answer(ns.answer_request(gone[0].question))
        if any(mentions(event.retrieved.items, gone[0]) for event in received.events if event.HasField("retrieved")):
            raise BrokenError("Answer still retrieves what was to be forgotten")
    later = backend.fact()
    ns.tell(later)
    ns.expect_visible(later, *kept)
    for fact in gone:
        ns.expect_hidden(fact, f"{why}, and a later day brought it back")


@check(
    "fgt.session",
    "FGT-2",
    "FGT-3",
    "FGT-4",
    "FGT-5",
    title="a session that was forgotten is never found again; its day stays",
    applies=requirements.forget,
)
def session(backend: BackendUnderTest) -> None:
    ns, gone, kept, later = backend.namespace(), backend.fact(), backend.fact(), backend.fact()
    # Split over frames: all of it is to go. Where facts are extracted, a second might take the place of the first.
    more = [backend.fact()] if backend.keeps_words else []
    told = ns.session(gone.statement, *(fact.statement for fact in more), "See you.")
    first = ns.frames(*fixtures.split(told), ns.session(kept.statement))
    ns.commit(first)
    second = ns.frames(ns.session(later.statement))
    ns.commit(second)
    elsewhere = backend.namespace()
    twin = elsewhere.session(gone.statement)
    twin.session_id = told.session_id
    elsewhere.commit(elsewhere.frames(twin))
    for fact in (gone, *more, kept, later):
        ns.expect_visible(fact)
    _forget(ns, pb.ForgetRequest(session_id=backend.new_id()))
    ns.expect_visible(gone)
    _forget(ns, pb.ForgetRequest(session_id=told.session_id))
    others = (kept, later) if backend.keeps_words else (later,)
    _gone(ns, [first, second], [gone, *more], others)
    elsewhere.expect_visible(gone)  # an id of another namespace is another id
    _empty_the_last_day(ns)


def _empty_the_last_day(ns: NamespaceFixture) -> None:
    """Forget all that a last day of one session holds: the day itself stays the last one."""
    last = ns.sessions[-1]
    _forget(ns, pb.ForgetRequest(session_id=last.session_id))
    what = f"Search as of day {ns.last_day}, whose only session was forgotten,"
    response = ns.expect_ok(partial(ns.backend.search, ns.question("Anything?")), what)
    if response.visible_through_day != ns.last_day:
        raise BrokenError(f"{what} says visible_through_day {response.visible_through_day}")
    back = ns.frames(ns.session("Good day.", day=ns.last_day), day=ns.last_day)
    expect_refused(
        partial(ns.backend.ingest, back),
        "FAILED_PRECONDITION",
        f"a new batch for day {ns.last_day}, whose only session was forgotten,",
    )


@check(
    "fgt.text",
    "FGT-1",
    "FGT-2",
    "FGT-3",
    "FGT-4",
    title="a fact or a subject that was forgotten is never found again; the turns beside it are, and what comes later",
    applies=requirements.forget,
)
def text(backend: BackendUnderTest) -> None:
    for by_name in (False, True):
        ns, gone, kept = backend.namespace(), backend.fact(), backend.fact()
        elsewhere = backend.namespace()
        elsewhere.tell(gone)
        # The words stand in the middle of a turn where turns are kept, and in that of an event.
        said = f"Well, well. {gone.statement} So it is." if backend.keeps_words else gone.statement
        words = f"storm named {gone.value} passed over"
        event = fixtures.event(backend.new_id(), f"At noon a {words} the harbour.")
        first = ns.frames(ns.session(said, kept.statement), events=[event])
        ns.commit(first)
        ns.expect_visible(gone)
        if by_name:
            _forget(ns, pb.ForgetRequest(subject=gone.value.upper()))
        else:
            _forget(ns, pb.ForgetRequest(fact_text=gone.statement))
            _forget(ns, pb.ForgetRequest(fact_text=words))
            # In other letters, or with other blanks, it is not what was said.
            _forget(ns, pb.ForgetRequest(fact_text=kept.statement.upper()))
            _forget(ns, pb.ForgetRequest(fact_text=kept.statement.replace(" ", "  ")))
        _gone(ns, [first], [gone], (kept,) if backend.keeps_words else ())
        elsewhere.expect_visible(gone)
        ns.tell(gone)
        ns.items(gone)


_NAMES = (
    ("élodie", "ÉLODIE", "Elodie"),
    ("佐藤", "佐藤さん", "斎藤さん"),
    ("kor_vin", "Kor_Vin", "Korovin"),
    ("50%Rum", "50%rum", "50 sorts of rum"),
)
"""A subject, how a turn says it, and what is nearly the same: another letter, or what a wild card would match."""


@check(
    "fgt.names",
    "FGT-1",
    "FGT-2",
    "FGT-3",
    title="a subject is a name in any letters and any script: no pattern, and not the name of who spoke",
    applies=requirements.forget_of_words,
)
def names(backend: BackendUnderTest) -> None:
    ns = backend.namespace()
    friend = fixtures.FRIEND.display_name
    told: dict[str, tuple[Fact, Fact]] = {}
    sessions = []
    for subject, name, near in (*_NAMES, (friend, friend, "his sister")):
        # Words of their own to look for, so that it does not matter how names are indexed.
        gone, kept = (_about(backend.words.next(), who) for who in (name, near))
        told[subject] = gone, kept
        sessions.append(ns.session(gone.statement, "I see.", kept.statement))
    for turn in sessions[-1].turns[1:]:
        turn.speaker_id = fixtures.FRIEND.participant_id
    ns.commit(ns.frames(*sessions))
    for gone, kept in told.values():
        ns.expect_visible(gone, kept)
    for subject, (gone, kept) in told.items():
        _forget(ns, pb.ForgetRequest(subject=subject))
        ns.expect_hidden(gone, f"the subject {subject!r} was to be forgotten")
        if not shows(ns.search(kept.question).items, kept, verbatim=True):
            raise BrokenError(
                f"{quoted(kept)} is not found: it went with the subject {subject!r}, which it does not name"
            )


def _about(word: str, name: str) -> Fact:
    return Fact(f"The {word} belongs to {name}.", f"{word}?", word)
