"""Builds questions about one detail: factual and counterfactual (D3)."""

from __future__ import annotations

from collections.abc import Mapping

from memarena_dataset.model import Family
from memarena_dataset.values import DateValue, TimeValue, WeekdayValue

from memarena_masim.plan.state import Fact, FactKind, Role, StatedFact
from memarena_masim.questions.book import Book, Draft, typed
from memarena_masim.rng import Stream

_PREMISES = (
    "I have it in my head that {premise}. Does that need correcting, and if so, how?",
    "Say I wrote down that {premise}: what would I have to change to get it right?",
    "Assume for my notes that {premise}. What was it in fact?",
    "Somebody is convinced that {premise}. What would you tell them?",
)
_NOW = (
    "As things stand by now: {about}?",
    "After the change, {about}?",
    "What is the latest I heard on {about}?",
    "Leaving out what no longer holds, {about}?",
)
_BEFORE = (
    "Before it was changed, {about}?",
    "What did I hear at first on {about}, before there was a change?",
    "The change aside, how was it originally: {about}?",
    "Going by the earlier word, the one that no longer holds: {about}?",
)


def plain_detail(book: Book, ego: str, stated: StatedFact) -> bool:
    """Whether a question can be about a statement's fact as a plain detail: it has one value and is not guarded."""
    fact = stated.fact
    if fact.kind is not FactKind.DETAIL or fact.guarded or fact.supersedes or fact.fact_id in book.outdated:
        return False
    return not book.contested(ego, fact)


def factual(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """Build a question for the value of a detail; None if it is not a plain one."""
    if not plain_detail(book, ego, stated):
        return None
    fact = stated.fact
    truth = {
        "answer": fact.value.text,
        "values": typed(fact.value.value),
        "requires_temporal": isinstance(fact.value.value, TimeValue | WeekdayValue | DateValue),
    }
    return detail_draft(book, Family.QA, ego, fact, book.ask(ego, fact, ego), truth)


def changed(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """Build a question for the current or the earlier value of a detail, of which the ego heard both; else None."""
    if stated.role is not Role.CHANGE:
        return None
    fact = stated.fact
    replaced = [stated for stated in book.statements(ego, fact.supersedes) if stated.value.text != fact.value.text]
    if not replaced:
        return None
    now = stream.chance(0.5)
    value = fact.value if now else replaced[0].fact.value
    query = stream.pick(_NOW if now else _BEFORE).format(about=book.about(ego, fact, ego))
    truth = {
        "answer": value.text,
        "values": typed(value.value),
        "requires_temporal": True,
        "validity": "current" if now else "earlier",
    }
    draft = detail_draft(book, Family.QA, ego, fact, query, truth)
    draft.evidence = (*replaced, *draft.evidence)
    draft.uses = (fact.fact_id, fact.supersedes)
    draft.difficulty, draft.wanted = "hard", book.wanted("now" if now else "before", ego, fact, ego)
    return draft


def counterfactual(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """Build a question with a false premise about a detail, which a right answer corrects; None if it is not plain."""
    if not plain_detail(book, ego, stated):
        return None
    fact = stated.fact
    altered = book.attribute(fact).kind.other(stream, book.config.dates_from(stated.day), fact.value)
    premise = book.plain(ego, fact, altered.text, altered.slots()["n"])
    truth = {
        "real_fact": fact.value.text,
        "altered_detail": altered.text,
        "values": typed(fact.value.value),
        "altered_values": typed(altered.value),
    }
    query = stream.pick(_PREMISES).format(premise=premise)
    draft = detail_draft(book, Family.COUNTERFACTUAL, ego, fact, query, truth)
    draft.wanted = book.wanted("premise", ego, fact, ego, **altered.slots())
    draft.difficulty = "hard"
    return draft


def detail_draft(book: Book, family: Family, ego: str, fact: Fact, query: str, truth: Mapping[str, object]) -> Draft:
    """Return the draft of a question about a detail, with all statements of it in the ego's sessions as evidence."""
    evidence = tuple(book.statements(ego, fact.fact_id))
    truth = {**truth, "source_session": evidence[0].session_id}
    draft = Draft(family, ego, query, truth, evidence, fact.fact_id, asker=ego)
    draft.uses, draft.last_day = (fact.fact_id,), evidence[-1].day
    draft.wanted = book.wanted("detail", ego, fact, ego)
    draft.difficulty = "easy" if len(evidence) > 1 else "medium"
    draft.extra["interference"] = book.interference(ego, fact)
    return draft
