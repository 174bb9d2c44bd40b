"""IDN: a namespace is one life, and ids are opaque bytes."""

from __future__ import annotations

import secrets

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.checks.search_results import scored
from memarena.conformance.contract_limits import ID_BYTES
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import by_itself, differs, score_change, scores_differ


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


@check("idn.long-ids", "IDN-1", "IDN-3", "IDN-4", "GEN-4")
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
        other.expect_hidden(ours, f"it was ingested in a namespace whose name differs in byte {index + 1}")
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
    ns, question, again = scored(backend)
    before = ns.stable_items(question)
    other = backend.namespace()
    other.commit(other.frames(*(other.session(again) for _ in range(6))))
    after = ns.search(question).items
    if differs(before, after) or scores_differ(before, after):
        cause = by_itself(after, lambda: ns.search(question).items) or "an Ingest into another namespace changed"
        raise BrokenError(f"{cause} items or scores: {score_change(before, after)}")
