"""EVD: evidence decides nothing for a competitor, and is all that a diagnostic is given."""

from __future__ import annotations

from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import differs
from memarena.conformance.wire import RefusedError


@check(
    "evd.competitor", "EVD-2", title="a competitor does not use privileged evidence", applies=requirements.competitor
)
def competitor(backend: BackendUnderTest) -> None:
    ns, named, asked = backend.namespace(), backend.fact(), backend.fact()
    ns.tell(named, asked)
    without = ns.items(asked)
    question = ns.question(asked.question)
    session = ns.sessions[0].session_id
    question.privileged_evidence.CopyFrom(pb.PrivilegedEvidence(session_ids=[session]))
    try:
        found = backend.search(question)
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
    applies=requirements.diagnostic,
)
def diagnostic(backend: BackendUnderTest) -> None:
    ns, fact = backend.namespace(), backend.fact()
    ns.tell(fact)
    ns.expect_visible(fact)
    question = ns.question(fact.question)
    question.privileged_evidence.CopyFrom(pb.PrivilegedEvidence())
    ns.expect_ok(partial(backend.search, question), "evidence that names no session")
    question.ClearField("privileged_evidence")
    try:
        backend.search(question)
    except RefusedError as error:
        if error.code != "INVALID_ARGUMENT" or "privileged_evidence" not in error.fields:
            raise BrokenError(
                f"no evidence: expected OK or INVALID_ARGUMENT naming privileged_evidence, got {error}"
            ) from error
