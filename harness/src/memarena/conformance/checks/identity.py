"""IDN: a namespace is one life, and ids are opaque bytes."""

from __future__ import annotations

import secrets

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.contract_limits import ID_BYTES
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import by_itself, differs, mentions, score_change, scores_differ
from memarena.conformance.wire import RefusedError


@check("idn.isolated", "IDN-1", "GEN-4")
def isolated(backend: BackendUnderTest) -> None:
    """Two namespaces do not see each other."""
    ns, other = backend.namespace(), backend.namespace()
    ours, theirs = backend.fact(), backend.fact()
    ns.add(ours)
    other.add(theirs)
    ns.expect_visible(ours)
    other.expect_visible(theirs)
    ns.expect_hidden(theirs, "it was ingested in another namespace")
    other.expect_hidden(ours, "it was ingested in another namespace")
    if backend.diagnostic:
        request = ns.question(theirs.question)
        foreign = [session.session_id for session in other.sessions]
        request.privileged_evidence.CopyFrom(pb.PrivilegedEvidence(session_ids=foreign))
        try:
            returned = backend.search(request)
        except RefusedError:
            return  # evidence that is not there may be refused
        if mentions(returned.items, theirs):
            raise BrokenError("evidence that names a session of another namespace shows that session")


@check("idn.read-names", "IDN-2", "IDN-3")
def read_names(backend: BackendUnderTest) -> None:
    """A name is neither a number nor a path nor encoded: it is its bytes."""
    number, stem = secrets.randbelow(10**9) + 10**9, backend.new_id()
    groups = {
        "read as a number": (f"{number}", f"00{number}"),
        "read as a path": (f"{stem}/b", f"{stem}/./b", f"{stem}//b", f"{stem}/c/../b"),
        "decoded like a URL": (f"{stem}A", f"{stem}%41"),
    }
    for how, names in groups.items():
        ingested = [(backend.namespace(name), backend.fact()) for name in names]
        # A later day each, so that where two are one the second is ingested and shows the first.
        for day, (ns, fact) in enumerate(ingested):
            ns.add(fact, day=day)
        for ns, fact in reversed(ingested):
            ns.expect_visible(fact)
            for other, foreign in ingested:
                if other is not ns:
                    where = f"it was ingested in {other.namespace}, not in {ns.namespace}"
                    ns.expect_hidden(foreign, f"{where}, which are one where a name is {how}")


@check("idn.long-ids", "IDN-3", "IDN-4")
def long_ids(backend: BackendUnderTest) -> None:
    """Ids that differ in their last byte only are different ids."""

    def pair(index: int) -> tuple[str, str]:
        """Two ids of 128 bytes that differ in one byte alone, counted from 0."""
        stem = f"{backend.new_id()}-".ljust(ID_BYTES, "x")
        return f"{stem[:index]}0{stem[index + 1 :]}", f"{stem[:index]}1{stem[index + 1 :]}"

    for index in (64, 100, ID_BYTES - 1):
        ns, other = (backend.namespace(name) for name in pair(index))
        ours, theirs = backend.fact(), backend.fact()
        ns.add(ours)
        other.add(theirs)
        ns.expect_visible(ours)
        ns.expect_hidden(theirs, f"it was ingested in a namespace whose name differs in byte {index + 1}")
        other.expect_visible(theirs)
    ns, last = backend.namespace(), ID_BYTES - 1
    for batch in pair(last):
        ingested = (backend.fact(), backend.fact()) if backend.keeps_words else (backend.fact(),)
        session = ns.session("", *(fact.statement for fact in ingested))
        for turn, turn_id in zip(session.turns[1:], pair(last), strict=False):
            turn.turn_id = turn_id
        session.participants.extend(
            pb.Participant(participant_id=each, display_name="Ada Moreau", role=pb.PARTICIPANT_ROLE_PERSON)
            for each in pair(last)
        )
        first, second = ns.session("Good morning."), ns.session("Good night.")
        first.session_id, second.session_id = pair(last)
        events = [fixtures.event(event_id, "It rained.", ns.last_day + 1) for event_id in pair(last)]
        if ns.commit(ns.frames(session, first, second, events=events, batch_id=batch)).replayed:
            raise BrokenError("a batch id that differs in its last byte from a committed one counts as replayed")
        ns.expect_visible(*ingested)


@check("idn.scores", "IDN-1", "SRC-7", applies=requirements.stable_search)
def scores(backend: BackendUnderTest) -> None:
    """What other namespaces hold changes neither items nor scores."""
    ns = backend.namespace()
    rare, common = backend.words.next(), backend.words.next()
    texts: tuple[str, ...] = (
        f"The {rare} is by the river.",
        f"The {common} is by the river.",
        "The river is high.",
        "Good night.",
    )
    if not backend.keeps_words:
        texts = tuple(backend.fact().statement for _ in range(2))
    ns.commit(ns.frames(*(ns.session(text) for text in texts)))
    question = f"{rare} {common} river?" if backend.keeps_words else backend.fact().question
    before = ns.stable_items(question)
    other = backend.namespace()
    other.commit(other.frames(*(other.session(f"The {common} again, number {n}.") for n in range(6))))
    after = ns.search(question).items
    if differs(before, after) or scores_differ(before, after):
        cause = by_itself(after, lambda: ns.search(question).items) or "an Ingest into another namespace changed"
        raise BrokenError(f"{cause} items or scores: {score_change(before, after)}")


@check("idn.any-id", "IDN-4", "IDN-2")
def any_id(backend: BackendUnderTest) -> None:
    """Every printable ASCII character may be in an id."""
    printable = "".join(chr(code) for code in range(0x21, 0x7F))
    stem = backend.new_id()
    ns, fact = backend.namespace((stem + printable)[:ID_BYTES]), backend.fact()
    session = ns.session(fact.statement)
    session.session_id = f"s{printable}"
    session.turns[0].turn_id = f"t{printable}"
    session.participants[1].participant_id = f"p{printable}"
    ns.commit(ns.frames(session, batch_id=f"b{printable}"))
    ns.expect_visible(fact)
