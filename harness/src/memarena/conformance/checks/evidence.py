"""EVD: evidence decides nothing for a competitor, and is all that a diagnostic gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import differs, mentions, score_change
from memarena.conformance.wire import RefusedError

_FACTS = 5


@check("evd.competitor", "EVD-2", "EVD-4", applies=requirements.competitor)
def competitor(backend: BackendUnderTest) -> None:
    """A competitor neither uses nor keeps privileged evidence."""
    ns, shared = backend.namespace(), backend.words.next()
    facts = [backend.fact() for _ in range(_FACTS if backend.keeps_words else 2)]
    texts = [f"{fact.statement} {shared}." if backend.keeps_words else fact.statement for fact in facts]
    ns.commit(ns.frames(*(ns.session(text) for text in texts)))
    text = f"{shared}?" if backend.keeps_words else facts[0].question
    ns.stable_items(text)
    for index, bound in ((0, 0), (len(facts) - 1, 0), (len(facts) - 1, 1), (0, 1)):
        question = ns.question(text)
        question.max_items = bound
        without = ns.expect_ok(partial(backend.search, question), "a question without evidence").items
        evidence = pb.PrivilegedEvidence(session_ids=[ns.sessions[index].session_id], access_marker="restricted")
        question.privileged_evidence.CopyFrom(evidence)
        asked: dict[str, Callable[[], Sequence[pb.MemoryItem]]] = {"Search": lambda: backend.search(question).items}  # noqa: B023
        if backend.has(pb.CAPABILITY_ANSWER):
            asked["Answer"] = partial(_retrieved, ns, question)
        for rpc, call in asked.items():
            try:
                returned = call()
            except RefusedError as error:
                if error.code != "INVALID_ARGUMENT" or not any("privileged_evidence" in each for each in error.fields):
                    raise BrokenError(
                        f"{rpc}: expected OK or INVALID_ARGUMENT naming privileged_evidence, got {error}"
                    ) from error
                continue
            if differs(without, returned):
                raise BrokenError(f"privileged evidence changed what {rpc} finds: {score_change(without, returned)}")
        question.ClearField("privileged_evidence")
        if differs(without, after := backend.search(question).items):
            raise BrokenError(f"evidence of an earlier call changed what Search finds: {score_change(without, after)}")


def _retrieved(ns: NamespaceFixture, question: pb.SearchRequest) -> Sequence[pb.MemoryItem]:
    request = ns.answer_request(question.text)
    request.search.CopyFrom(question)
    received = ns.answer(request)
    if received.refused is not None:
        raise received.refused
    return received.events[0].retrieved.items


@check("evd.diagnostic", "EVD-3", "IDN-1", applies=requirements.diagnostic)
def diagnostic(backend: BackendUnderTest) -> None:
    """A diagnostic takes evidence that names no session, and none of another namespace."""
    (ns, fact), (other, theirs) = backend.filled(), backend.filled()
    ns.expect_visible(fact)
    question = ns.question(theirs.question)
    question.privileged_evidence.session_ids[:] = [session.session_id for session in other.sessions]
    with suppress(RefusedError):  # evidence that is not there may be refused
        if mentions(backend.search(question).items, theirs):
            raise BrokenError("evidence that names a session of another namespace shows that session")
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
