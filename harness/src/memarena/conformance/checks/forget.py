"""FGT: what was to be forgotten is never returned again, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import expect_refused, mentions
from memarena.conformance.fixtures import Fact


@check("fgt.undeclared", "FGT-1", "ERR-4", applies=requirements.no_forget)
def undeclared(backend: BackendUnderTest) -> None:
    """Without FORGET the RPC is UNIMPLEMENTED."""
    request = pb.ForgetRequest(namespace=backend.new_id(), subject="Omar")
    expect_refused(partial(backend.wire.forget, request), "UNIMPLEMENTED", "Forget")


@check("fgt.required", "FGT-1", "GEN-3", "ERR-5", applies=requirements.forget)
def required(backend: BackendUnderTest) -> None:
    """A Forget without namespace or target is refused by name, and a stranger is NOT_FOUND."""
    ns = backend.namespace()
    request = pb.ForgetRequest(namespace=ns.namespace, subject="Omar")
    expect_refused(partial(backend.wire.forget, request), "NOT_FOUND", "Forget in a namespace that never was")
    ns.add(backend.fact())
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
    what = f"after a Forget, Search as of day {ns.last_day}, which was and is the last one,"
    response = ns.expect_ok(partial(ns.backend.search, ns.question("Anything?")), what)
    if response.visible_through_day != ns.last_day:
        raise BrokenError(f"{what} says visible_through_day {response.visible_through_day}")


def _gone(
    ns: NamespaceFixture, days: Sequence[list[pb.IngestRequest]], gone: Sequence[Fact], kept: Sequence[Fact]
) -> None:
    """Expect forgotten facts neither now, nor as of an earlier day, nor after a replay, nor after a later day."""
    backend, why = ns.backend, "it was to be forgotten"
    ns.expect_visible(*kept)
    for fact in gone:
        ns.expect_hidden(fact, why)
    for frames in days:
        ns.replay(frames, "a replay after a Forget")
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
    ns.add(later)
    ns.expect_visible(later, *kept)
    for fact in gone:
        ns.expect_hidden(fact, f"{why}, and a later day brought it back")


@check("fgt.session", "FGT-2", "FGT-3", "FGT-4", "FGT-5", applies=requirements.forget)
def session(backend: BackendUnderTest) -> None:
    """A session that was forgotten is never returned again; its day stays."""
    ns, gone, kept, later = backend.namespace(), backend.fact(), backend.fact(), backend.fact()
    # Split over frames: all of it is to go. Where facts are extracted, a second might replace the first.
    more = [backend.fact()] if backend.keeps_words else []
    ingested = ns.session(gone.statement, *(fact.statement for fact in more), "See you.")
    first = ns.frames(*fixtures.split(ingested, 1), ns.session(kept.statement))
    ns.commit(first)
    second = ns.frames(ns.session(later.statement))
    ns.commit(second)
    elsewhere = backend.namespace()
    twin = elsewhere.session(gone.statement)
    twin.session_id = ingested.session_id
    elsewhere.commit(elsewhere.frames(twin))
    for fact in (gone, *more, kept, later):
        ns.expect_visible(fact)
    _forget(ns, pb.ForgetRequest(session_id=backend.new_id()))
    ns.expect_visible(gone)
    _forget(ns, pb.ForgetRequest(session_id=ingested.session_id))
    others = (kept, later) if backend.keeps_words else (later,)
    _gone(ns, [first, second], [gone, *more], others)
    elsewhere.expect_visible(gone)  # an id of another namespace is another id
    _empty_the_last_day(ns)


def _empty_the_last_day(ns: NamespaceFixture) -> None:
    """Forget all that a last day of one session, or of one event, holds: the day itself stays the last one."""
    backend = ns.backend
    for what in ("session", "event") if backend.keeps_words else ("session",):
        fact, target = backend.fact(), pb.ForgetRequest()
        event = fixtures.event(backend.new_id(), fact.statement, ns.last_day + 1)
        frames = ns.frames(ns.session(fact.statement)) if what == "session" else ns.frames(events=[event])
        ns.commit(frames)
        if what == "session":
            ns.expect_visible(fact)
            target.session_id = ns.sessions[-1].session_id
        else:
            target.fact_text = fact.statement
        _forget(ns, target)
        ns.replay(frames, f"a replay of the last day, whose only {what} was forgotten,")
        ns.expect_hidden(fact, "it was to be forgotten, and its day, the last one, was only replayed")
        back = ns.frames(ns.session("Good day.", day=ns.last_day), day=ns.last_day)
        ns.refuse(back, "FAILED_PRECONDITION", f"a new batch for day {ns.last_day}, whose only {what} was forgotten,")
