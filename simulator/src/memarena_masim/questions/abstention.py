"""Builds questions that must not be answered (D5, witness pairs), each with an answerable one of the same form."""

from __future__ import annotations

from collections.abc import Iterable

from memarena_dataset.model import Family
from memarena_dataset.values import NameValue, TermValue

from memarena_masim.plan.facts import FactSource
from memarena_masim.plan.state import Fact, StatedFact
from memarena_masim.questions.book import Book, Draft, typed
from memarena_masim.questions.details import detail_draft, plain_detail
from memarena_masim.rng import Stream


def answerable(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """Build an answerable question of D5, in the form of those to abstain from; None if the fact does not allow it."""
    fact = stated.fact
    if not plain_detail(book, ego, stated) or not book.catalogue.distinctive(fact.item):
        return None
    truth = {"expected_response": "answer", "correct_fact": fact.value.text, "values": typed(fact.value.value)}
    return detail_draft(book, Family.CONFABULATION, ego, fact, book.ask(ego, fact, ego), truth)


def abstention_pair(
    book: Book, source: FactSource, ego: str, stated: StatedFact, stream: Stream, egos: Iterable[str]
) -> tuple[Draft, Draft] | None:
    """Build a D5 pair: a question that ``ego``'s sessions answer, and one of the same form to abstain from.

    The second has the same attribute and item, and is asked of the first of ``egos`` who never heard of it. Either both
    are about the asker, or both about a person of whom the asker heard, so that neither words nor names tell the two
    apart. None if there is no such ego.
    """
    answered, fact = answerable(book, ego, stated, stream), stated.fact
    if answered is None:
        return None
    attribute = book.attribute(fact)
    for other in egos:
        subjects = [other] if fact.subject == ego else stream.shuffled(book.heard_of(other))[:8]
        for subject in subjects:
            claimed = source.detail(subject, attribute, fact.item)
            if not claimed.guarded and never_came_up(book, other, claimed):
                return answered, _unanswered(book, other, claimed, stated.day)
    return None


def never_came_up(book: Book, ego: str, fact: Fact) -> bool:
    """Whether no session of an ego, at any time, involves both the fact's subject and its item."""
    return not book.statements(ego, fact.fact_id) and book.absent(ego, fact.subject, fact.item)


def _unanswered(book: Book, ego: str, fact: Fact, day: int) -> Draft:
    """Return a question about a fact that the ego never heard, with a wrong value heard nearby as a lure."""
    rumours = [stated.value.text for stated in book.by_attribute[ego, fact.attribute] if stated.fact.item == fact.item]
    others = [stated.value.text for stated in book.by_attribute[ego, fact.attribute]]
    truth = {
        "expected_response": "abstain",
        "adversarial_answer": next(iter(rumours or others), None),
        "claim": typed(NameValue(name=book.names[fact.subject]), TermValue(text=fact.item)),
    }
    draft = Draft(
        Family.CONFABULATION, ego, book.ask(ego, fact, ego), truth, (), fact.fact_id, asker=ego, no_evidence=True
    )
    draft.uses, draft.last_day, draft.difficulty = (fact.fact_id,), day, "medium"
    draft.extra["interference"] = book.interference(ego, fact)
    draft.wanted = book.wanted("detail", ego, fact, ego)
    return draft


def witnesses(book: Book, ego: str, stated: StatedFact, stream: Stream) -> tuple[Draft, Draft] | None:
    """Build a witness pair (an extension): the same question to an ego who heard the fact and to one who did not."""
    fact = stated.fact
    if not plain_detail(book, ego, stated) or fact.subject == ego or not book.catalogue.distinctive(fact.item):
        return None
    for other in stream.shuffled(sorted(book.names)):
        if other in (ego, fact.subject) or not book.speaks(other) or not never_came_up(book, other, fact):
            continue
        query = book.ask(ego, fact, None)
        truth = {"expected_response": "answer", "correct_fact": fact.value.text, "values": typed(fact.value.value)}
        heard = detail_draft(book, Family.WITNESS, ego, fact, query, truth)
        claim = typed(NameValue(name=book.names[fact.subject]), TermValue(text=fact.item))
        missing = {"expected_response": "abstain", "claim": claim}
        absent = Draft(Family.WITNESS, other, query, missing, (), fact.fact_id, asker=other, no_evidence=True)
        absent.uses, absent.last_day, absent.difficulty = (fact.fact_id,), heard.last_day, heard.difficulty
        absent.extra["interference"] = book.interference(other, fact)
        heard.wanted = absent.wanted = book.wanted("detail", ego, fact, None)
        return heard, absent
    return None
