"""FGT: what was to be forgotten is never found again, and nothing else is lost."""

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


def _gone(ns: NamespaceFixture, days: Sequence[list[pb.IngestRequest]], gone: Fact, kept: Sequence[Fact]) -> None:
    """After a Forget: the fact is found neither now, nor as of an earlier day, nor after a replay; the others are."""
    backend, why = ns.backend, "it was to be forgotten"
    ns.expect_visible(*kept)
    ns.expect_hidden(gone, why)
    for frames in days:
        if not ns.expect_ok(partial(backend.ingest, frames), "a replay after a Forget").replayed:
            raise BrokenError("a replay after a Forget is not said to be one")
    ns.expect_visible(*kept)
    ns.expect_hidden(gone, f"{why}, and its day was only replayed")
    if backend.has(pb.CAPABILITY_TIME_TRAVEL):
        ns.expect_hidden(gone, f"{why}, also as of an earlier day", as_of_day=0)
    if backend.has(pb.CAPABILITY_ANSWER):
        received = ns.answer(ns.answer_request(gone.question))
        if any(mentions(event.retrieved.items, gone) for event in received.events if event.HasField("retrieved")):
            raise BrokenError("Answer still retrieves what was to be forgotten")
    later = backend.fact()
    ns.tell(later)
    ns.expect_visible(later, *kept)
    ns.expect_hidden(gone, f"{why}, and a later day brought it back")


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
    told = ns.session(gone.statement, "See you.")
    first = ns.frames(told, ns.session(kept.statement))
    ns.commit(first)
    second = ns.frames(ns.session(later.statement))
    ns.commit(second)
    elsewhere = backend.namespace()
    elsewhere.tell(gone)
    for fact in (gone, kept, later):
        ns.expect_visible(fact)
    _forget(ns, pb.ForgetRequest(session_id=backend.new_id()))
    ns.expect_visible(gone)
    _forget(ns, pb.ForgetRequest(session_id=told.session_id))
    others = (kept, later) if backend.keeps_words else (later,)
    _gone(ns, [first, second], gone, others)
    elsewhere.expect_visible(gone)


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
        event = fixtures.event(backend.new_id(), f"A storm named {gone.value} passed over the harbour.")
        first = ns.frames(ns.session(gone.statement, kept.statement), events=[event])
        ns.commit(first)
        ns.expect_visible(gone)
        if by_name:
            _forget(ns, pb.ForgetRequest(subject=gone.value.upper()))
        else:
            _forget(ns, pb.ForgetRequest(fact_text=gone.statement))
            _forget(ns, pb.ForgetRequest(fact_text=event.text))
            # In other letters it is not what was said.
            _forget(ns, pb.ForgetRequest(fact_text=kept.statement.upper()))
        _gone(ns, [first], gone, (kept,) if backend.keeps_words else ())
        elsewhere.expect_visible(gone)
        ns.tell(gone)
        ns.items(gone)
