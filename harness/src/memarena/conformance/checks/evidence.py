"""EVD: evidence decides nothing for a competitor, and is all that a diagnostic gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import differs, score_change
from memarena.conformance.wire import RefusedError


@check("evd.competitor", "EVD-2", applies=requirements.competitor)
def competitor(backend: BackendUnderTest) -> None:
    """A competitor does not use privileged evidence."""
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
        _ignored("Search", without, partial(_searched, ns, question))
        if backend.has(pb.CAPABILITY_ANSWER):
            _ignored("Answer", without, partial(_retrieved, ns, question))


_FACTS = 5


def _searched(ns: NamespaceFixture, question: pb.SearchRequest) -> Sequence[pb.MemoryItem]:
    return ns.backend.search(question).items


def _retrieved(ns: NamespaceFixture, question: pb.SearchRequest) -> Sequence[pb.MemoryItem]:
    request = ns.answer_request(question.text)
    request.search.CopyFrom(question)
    received = ns.answer(request)
    if received.refused is not None:
        raise received.refused
    return received.events[0].retrieved.items


def _ignored(rpc: str, without: Sequence[pb.MemoryItem], call: Callable[[], Sequence[pb.MemoryItem]]) -> None:
    try:
        returned = call()
    except RefusedError as error:
        if error.code != "INVALID_ARGUMENT" or not any("privileged_evidence" in field for field in error.fields):
            raise BrokenError(
                f"{rpc} with privileged evidence: expected INVALID_ARGUMENT naming privileged_evidence, got {error}"
            ) from error
        return
    if differs(without, returned):
        raise BrokenError(f"privileged evidence changed what {rpc} finds: {score_change(without, returned)}")


@check("evd.diagnostic", "EVD-3", applies=requirements.diagnostic)
def diagnostic(backend: BackendUnderTest) -> None:
    """A diagnostic takes evidence that names no session."""
    ns, fact = backend.namespace(), backend.fact()
    ns.add(fact)
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
