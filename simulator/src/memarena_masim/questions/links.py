"""Builds questions that link several sessions (D4): conflicting versions, and references to an earlier session."""

from __future__ import annotations

from memarena_dataset.model import Family

from memarena_masim.plan.state import Role, StatedFact
from memarena_masim.questions.book import Book, Draft, span_difficulty, typed
from memarena_masim.rng import Stream

_CONFLICTS = (
    "I was told two different things about {about}. What were the two versions?",
    "Accounts of {about} do not agree. Which two answers did I get?",
    "There is a contradiction in what I heard about {about}. Which two versions are there?",
)


def conflict(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """Build a question for both versions of a detail that two people tell differently; None if it cannot be asked."""
    if stated.role is not Role.VERSION or stated.speaker == ego:
        return None
    fact = stated.fact
    evidence = tuple(book.statements(ego, fact.fact_id))
    first = next((stated for stated in evidence if stated.role is not Role.VERSION and stated.speaker != ego), None)
    if first is None or first.speaker == stated.speaker:
        return None
    truth = {
        "original_detail": fact.value.text,
        "changed_detail": stated.value.text,
        "source_agent": first.speaker,
        "conflicting_agent": stated.speaker,
        "original_session": first.session_id,
        "conflicting_session": stated.session_id,
        "values": typed(fact.value.value),
        "changed_values": typed(stated.value.value),
    }
    query = stream.pick(_CONFLICTS).format(about=book.about(ego, fact, ego))
    draft = Draft(Family.CONFLICT, ego, query, truth, evidence, fact.fact_id, asker=ego)
    draft.wanted = book.wanted("conflict", ego, fact, ego)
    draft.uses, draft.last_day = (fact.fact_id,), evidence[-1].day
    draft.difficulty = span_difficulty(evidence[0], evidence[-1], len({stated.session_id for stated in evidence}))
    draft.extra["interference"] = book.interference(ego, fact)
    return draft


def anaphora(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """Build a question for the find to which a later statement refers without naming it; None if it cannot be asked."""
    if stated.role is not Role.FATE:
        return None
    fact = stated.fact
    evidence = tuple(book.statements(ego, fact.fact_id))
    first = next((stated for stated in evidence if stated.role is Role.TELL), None)
    if first is None or book.heard_of_another(ego, fact):
        return None
    if fact.subject == ego:
        query = f'I said of a thing from {fact.item}: "I {fact.fate}". Which thing did I mean?'
    else:
        query = f'{book.names[fact.subject]} said of a thing from {fact.item}: "I {fact.fate}". Which thing was meant?'
    truth = {
        "referent": fact.value.text,
        "antecedent_turn": first.turn_id,
        "antecedent_session": first.session_id,
        "reference_session": stated.session_id,
        "values": typed(fact.value.value),
    }
    draft = Draft(Family.ANAPHORA, ego, query, truth, evidence, fact.fact_id, asker=ego)
    draft.wanted = book.wanted("find", ego, fact, ego, did=fact.fate)
    draft.uses, draft.last_day = (fact.fact_id,), evidence[-1].day
    draft.difficulty = span_difficulty(first, evidence[-1], len({stated.session_id for stated in evidence}))
    draft.extra["interference"] = book.interference(ego, fact)
    return draft
