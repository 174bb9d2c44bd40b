"""ERR: what is not there has its own codes, and no error leaves anything broken."""

from __future__ import annotations

from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.check import check
from memarena.conformance.subject import Subject, changed, expect_refused


@check("err.unknown-namespace", "ERR-5", title="a namespace without a committed day is NOT_FOUND")
def unknown_namespace(subject: Subject) -> None:
    life = subject.life()
    question = life.question("What?")
    expect_refused(partial(subject.search, question), "NOT_FOUND", "Search of a namespace that never was")
    spoilt = changed(life.frames(life.session("Good morning.")), {1: _spoil})
    expect_refused(partial(subject.ingest, spoilt), "INVALID_ARGUMENT", "a session without an id")
    expect_refused(partial(subject.search, question), "NOT_FOUND", "Search of a namespace of which only failures exist")
    life.tell(subject.fact())
    life.search("What?")


def _spoil(frame: pb.IngestRequest) -> None:
    frame.session.ClearField("session_id")


@check("err.unknown-rpc", "ERR-4", title="an RPC that the contract does not have is UNIMPLEMENTED")
def unknown_rpc(subject: Subject) -> None:
    expect_refused(partial(subject.wire.unknown_rpc, "Rewind"), "UNIMPLEMENTED", "an RPC named Rewind")


@check("err.works-on", "ERR-1", "ERR-8", "ERR-6", title="after errors of every kind a namespace works as before")
def works_on(subject: Subject) -> None:
    life, fact, later = subject.life(), subject.fact(), subject.fact()
    life.tell(fact)
    life.expect_visible(fact)
    whole = life.frames(life.session(later.statement))
    bad_question = life.question("What?")
    bad_question.ClearField("text")
    for _ in range(3):
        expect_refused(
            partial(subject.ingest, changed(whole, {1: _spoil})), "INVALID_ARGUMENT", "a session without an id"
        )
        expect_refused(partial(subject.ingest, []), "INVALID_ARGUMENT", "a stream without frames")
        expect_refused(partial(subject.search, bad_question), "INVALID_ARGUMENT", "a question without text")
        life.expect_visible(fact)
    life.commit(whole)
    life.expect_visible(later)
