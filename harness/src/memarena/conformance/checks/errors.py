"""ERR: what is not there has its own codes, and no error leaves anything broken."""

from __future__ import annotations

from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.expectations import changed, expect_refused


@check("err.unknown-namespace", "ERR-5", title="a namespace without a committed day is NOT_FOUND")
def unknown_namespace(backend: BackendUnderTest) -> None:
    ns = backend.namespace()
    question = ns.question("What?")
    expect_refused(partial(backend.search, question), "NOT_FOUND", "Search of a namespace that never was")
    spoilt = changed(ns.frames(ns.session("Good morning.")), {1: _spoil})
    expect_refused(partial(backend.ingest, spoilt), "INVALID_ARGUMENT", "a session without an id")
    expect_refused(partial(backend.search, question), "NOT_FOUND", "Search of a namespace of which only failures exist")
    ns.tell(backend.fact())
    ns.search("What?")


def _spoil(frame: pb.IngestRequest) -> None:
    frame.session.ClearField("session_id")


@check("err.unknown-rpc", "ERR-4", title="an RPC that the contract does not have is UNIMPLEMENTED")
def unknown_rpc(backend: BackendUnderTest) -> None:
    expect_refused(partial(backend.wire.unknown_rpc, "Rewind"), "UNIMPLEMENTED", "an RPC named Rewind")


@check("err.works-on", "ERR-1", "ERR-8", "ERR-6", title="after errors of every kind a namespace works as before")
def works_on(backend: BackendUnderTest) -> None:
    ns, fact, later = backend.namespace(), backend.fact(), backend.fact()
    ns.tell(fact)
    ns.expect_visible(fact)
    whole = ns.frames(ns.session(later.statement))
    bad_question = ns.question("What?")
    bad_question.ClearField("text")
    for _ in range(3):
        expect_refused(
            partial(backend.ingest, changed(whole, {1: _spoil})), "INVALID_ARGUMENT", "a session without an id"
        )
        expect_refused(partial(backend.ingest, []), "INVALID_ARGUMENT", "a stream without frames")
        expect_refused(partial(backend.search, bad_question), "INVALID_ARGUMENT", "a question without text")
        ns.expect_visible(fact)
    ns.commit(whole)
    ns.expect_visible(later)
