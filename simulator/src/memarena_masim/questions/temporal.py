"""Builds questions about time (D3): the date of one happening, the days between two, the order of five."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from memarena_dataset.model import Family
from memarena_dataset.values import DateValue, DurationValue, OrderValue, TermValue

from memarena_masim.facts.values import date_words
from memarena_masim.plan.state import Fact, FactKind, StatedFact
from memarena_masim.questions.book import Book, Draft, typed
from memarena_masim.rng import Stream

ORDERED = 5
"""Number of events of an ordering; five have 120 orders, too many to guess."""


_ORDERINGS = (
    "Put these in order for me, earliest first: {things}.",
    "In what order did these happen, first to last: {things}?",
    "Which order did these happen in, starting with the earliest: {things}?",
)
KINDS = ("anchoring", "interval", "ordering")


def temporal(book: Book, ego: str, stated: StatedFact, stream: Stream, used: frozenset[str], kind: str) -> Draft | None:
    """Build a question of one of KINDS about the happening of ``stated``; None if it cannot be asked.

    ``used`` are the ids of facts about which other questions of the ego ask.
    """
    if stated.fact.kind is not FactKind.HAPPENING:
        return None
    if kind == "anchoring":
        return _anchoring(book, ego, stated.fact)
    others = [
        statements[0].fact
        for key, statements in book.by_fact[ego].items()
        if statements[0].fact.kind is FactKind.HAPPENING and key not in used and key != stated.fact.fact_id
    ]
    if kind == "interval":
        return _interval(book, ego, stated.fact, others, stream)
    return _ordering(book, ego, stated.fact, others, stream)


def _who(book: Book, ego: str, fact: Fact) -> str:
    return "I" if fact.subject == ego else book.called[book.names[fact.subject]]


def _anchoring(book: Book, ego: str, fact: Fact) -> Draft:
    moment = _moment(fact)
    truth = {
        "answer": f"{date_words(moment)}, {moment.year}",
        "temporal_type": "anchoring",
        "values": typed(DateValue(date=moment.isoformat())),
    }
    draft = _draft(book, ego, f"On which date did {_who(book, ego, fact)} {fact.item}?", truth, [fact])
    draft.wanted = book.wanted("anchoring", ego, fact, ego, did=fact.fate)
    return draft


def _interval(book: Book, ego: str, fact: Fact, others: list[Fact], stream: Stream) -> Draft | None:
    """Return a question for the days between two happenings of one person; None if all were on the same day."""
    apart = [other for other in others if other.subject == fact.subject and _moment(other) != _moment(fact)]
    if not apart:
        return None
    # Two random days mostly lie close together: all distances are drawn equally often, so that none can be guessed.
    days_apart = stream.pick(sorted({abs((_moment(other) - _moment(fact)).days) for other in apart}))
    fitting = [other for other in apart if abs((_moment(other) - _moment(fact)).days) == days_apart]
    first, second = sorted((fact, stream.pick(fitting)), key=_moment)
    days = (_moment(second) - _moment(first)).days
    person = _who(book, ego, fact)
    truth = {
        "answer": f"{days} day{'s' if days > 1 else ''}",
        "temporal_type": "interval",
        "values": typed(DurationValue(days=days)),
    }
    query = f"How many days lie between the day when {person} {first.fate} and the day when {person} {second.fate}?"
    draft = _draft(book, ego, query, truth, [first, second])
    other = book.wanted("interval", ego, second, ego, did=second.fate)
    draft.wanted = replace(book.wanted("interval", ego, first, ego, did=first.fate), other=other)
    return draft


def _ordering(book: Book, ego: str, fact: Fact, others: list[Fact], stream: Stream) -> Draft | None:
    """Return a question for the order of ORDERED happenings, each on a different day; None if there are too few."""
    chosen = {_moment(fact): fact}
    for other in stream.shuffled(others):
        chosen.setdefault(_moment(other), other)
    if len(chosen) < ORDERED:
        return None
    others_sample = stream.sample([other for moment, other in sorted(chosen.items()) if other is not fact], ORDERED - 1)
    ordered = sorted([fact, *others_sample], key=_moment)
    phrases = [f"{_who(book, ego, fact)} {fact.fate}" for fact in ordered]
    items = tuple(
        TermValue(text=phrase, aliases=(fact.fate, fact.item)) for phrase, fact in zip(phrases, ordered, strict=True)
    )
    truth = {"answer": "; ".join(phrases), "temporal_type": "ordering", "values": typed(OrderValue(items=items))}
    options = "; ".join(stream.shuffled(phrases))
    return _draft(book, ego, stream.pick(_ORDERINGS).format(things=options), truth, ordered)


def _moment(fact: Fact) -> date:
    assert fact.happened is not None
    return fact.happened


def _draft(book: Book, ego: str, query: str, truth: Mapping[str, object], facts: list[Fact]) -> Draft:
    evidence = tuple(
        sorted(
            (stated for fact in facts for stated in book.statements(ego, fact.fact_id)),
            key=lambda stated: (stated.day, stated.turn_id),
        )
    )
    draft = Draft(Family.TEMPORAL, ego, query, dict(truth), evidence, facts[0].fact_id, asker=ego, difficulty="hard")
    draft.uses, draft.last_day = tuple(fact.fact_id for fact in facts), evidence[-1].day
    draft.extra["interference"] = book.interference(ego, facts[0])
    return draft
