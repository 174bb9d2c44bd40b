"""EVD: evidence decides nothing for a competitor, and is all that a diagnostic is given."""

from __future__ import annotations

from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import needs
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.subject import Subject, differs
from memarena.conformance.wire import RefusedError


@check("evd.competitor", "EVD-2", title="a competitor does not use privileged evidence", applies=needs.competitor)
def competitor(subject: Subject) -> None:
    life, named, asked = subject.life(), subject.fact(), subject.fact()
    life.tell(named, asked)
    without = life.items(asked)
    question = life.question(asked.question)
    session = life.sessions[0].session_id
    question.privileged_evidence.CopyFrom(pb.PrivilegedEvidence(session_ids=[session]))
    try:
        found = subject.search(question)
    except RefusedError as error:
        if error.code != "INVALID_ARGUMENT" or "privileged_evidence" not in error.fields:
            raise BrokenError(
                f"privileged evidence: expected INVALID_ARGUMENT naming privileged_evidence, got {error}"
            ) from error
        return
    if differs(without, found.items):
        raise BrokenError("privileged evidence changed what was found")


@check(
    "evd.diagnostic",
    "EVD-3",
    title="a diagnostic takes evidence that names no session",
    applies=needs.diagnostic,
)
def diagnostic(subject: Subject) -> None:
    life, fact = subject.life(), subject.fact()
    life.tell(fact)
    life.expect_visible(fact)
    question = life.question(fact.question)
    question.privileged_evidence.CopyFrom(pb.PrivilegedEvidence())
    life.expect_ok(partial(subject.search, question), "evidence that names no session")
    question.ClearField("privileged_evidence")
    try:
        subject.search(question)
    except RefusedError as error:
        if error.code != "INVALID_ARGUMENT" or "privileged_evidence" not in error.fields:
            raise BrokenError(
                f"no evidence: expected OK or INVALID_ARGUMENT naming privileged_evidence, got {error}"
            ) from error
