"""Questions after one detail: factual, cloze, counterfactual, abstention and its answerable half, witness pairs."""

from __future__ import annotations

from collections.abc import Mapping

from memarena.dataset.model import Family
from memarena.dataset.values import DateValue, NameValue, TermValue, TimeValue, WeekdayValue

from masim.facts.values import Said
from masim.families.book import Book, Draft, typed
from masim.plan.state import Fact, FactKind, StatedFact
from masim.streams import Stream

_PREMISES = (
    "I have it in my head that {premise}. Does that need correcting, and if so, how?",
    "Say I wrote down that {premise}: what would I have to change to get it right?",
    "Assume for my notes that {premise}. What was it in fact?",
    "Somebody is convinced that {premise}. What would you tell them?",
)


def plain_detail(book: Book, ego: str, stated: StatedFact) -> bool:
    """Whether a statement's fact can be asked for as a plain detail: one value only, not kept for permission."""
    fact = stated.fact
    return fact.kind is FactKind.DETAIL and not fact.guarded and not book.contested(ego, fact)


def factual(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """D3 factual: the value of a detail."""
    if not plain_detail(book, ego, stated):
        return None
    fact = stated.fact
    timed = isinstance(fact.value.value, TimeValue | WeekdayValue | DateValue)
    truth = {"answer": fact.value.text, "values": typed(fact.value.value), "requires_temporal": timed}
    return _detail_draft(book, Family.QA, ego, fact, book.ask(ego, fact, ego), truth)


def cloze(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """D1: the value left out of a plain sentence, with four values that the ego heard of the same attribute."""
    if not plain_detail(book, ego, stated):
        return None
    fact = stated.fact
    until = max(one.day for one in book.statements(ego, fact.fact_id))
    others: dict[str, Said] = {}
    for one in stream.shuffled(book.by_attribute[ego, fact.attribute]):
        if one.day <= until and one.value.text != fact.value.text and len(others) < 4:
            others[one.value.text] = one.value
    if len(others) < 4:
        return None
    options = stream.shuffled([fact.value, *others.values()])
    letter = "ABCDE"[options.index(fact.value)]
    lines = [f"{'ABCDE'[place]}) {option.text}" for place, option in enumerate(options)]
    gap = book.plain(ego, fact, "____", "____")
    query = "\n".join([f"Which option fills the gap? {gap[0].upper()}{gap[1:]}.", *lines])
    truth = {
        "answer_letter": letter,
        "blank_word": fact.value.text,
        "options": [option.text for option in options],
        "option_values": typed(*(option.value for option in options)),
        "values": typed(fact.value.value),
        "session_id": stated.session_id,
    }
    draft = _detail_draft(book, Family.CLOZE, ego, fact, query, truth)
    draft.wanted = book.wanted("gap", ego, fact, ego, options="\n".join(lines))
    return draft


def counterfactual(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """D3: a premise with another value; right is the correction."""
    if not plain_detail(book, ego, stated):
        return None
    fact = stated.fact
    altered = book.attribute(fact).kind.other(stream, book.config.calendar_epoch, fact.value)
    premise = book.plain(ego, fact, altered.text, altered.slots()["n"])
    truth = {
        "real_fact": fact.value.text,
        "altered_detail": altered.text,
        "values": typed(fact.value.value),
        "altered_values": typed(altered.value),
    }
    query = stream.pick(_PREMISES).format(premise=premise)
    draft = _detail_draft(book, Family.COUNTERFACTUAL, ego, fact, query, truth)
    draft.wanted = book.wanted("premise", ego, fact, ego, **altered.slots())
    draft.difficulty = "hard"
    return draft


def answerable(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """D5, answer half: the same form of question as the abstain half, about something that was said."""
    if not plain_detail(book, ego, stated):
        return None
    fact = stated.fact
    truth = {
        "expected_response": "answer",
        "correct_fact": fact.value.text,
        "values": typed(fact.value.value),
    }
    return _detail_draft(book, Family.CONFABULATION, ego, fact, book.ask(ego, fact, ego), truth)


def unanswerable(book: Book, ego: str, stated: StatedFact, stream: Stream, fact: Fact) -> Draft | None:
    """D5, abstain half: a detail of the same attribute that never came up. ``stated`` only lends the form."""
    if fact.guarded or book.statements(ego, fact.fact_id) or not book.absent(ego, fact.subject, fact.item):
        return None
    if not book.catalogue.distinctive(fact.item):
        return None
    rumours = [one.value.text for one in book.by_attribute[ego, fact.attribute] if one.fact.item == fact.item]
    truth = {
        "expected_response": "abstain",
        "adversarial_answer": rumours[0] if rumours else stated.value.text,
        "claim": typed(NameValue(name=book.names[fact.subject]), TermValue(text=fact.item)),
    }
    draft = Draft(
        Family.CONFABULATION, ego, book.ask(ego, fact, ego), truth, (), fact.fact_id, asker=ego, no_evidence=True
    )
    draft.uses, draft.last_day = (fact.fact_id,), stated.day
    draft.wanted = book.wanted("detail", ego, fact, ego)
    return draft


def witnesses(book: Book, ego: str, stated: StatedFact, stream: Stream) -> list[Draft] | None:
    """Extension: the same words asked of one who heard it and of one who did not."""
    fact = stated.fact
    if not plain_detail(book, ego, stated) or fact.subject == ego or not book.catalogue.distinctive(fact.item):
        return None
    for other in stream.shuffled(sorted(book.names)):
        if other in (ego, fact.subject) or book.statements(other, fact.fact_id):
            continue
        if not book.absent(other, fact.subject, fact.item):
            continue
        truth = {"expected_response": "answer", "correct_fact": fact.value.text, "values": typed(fact.value.value)}
        heard = _detail_draft(book, Family.WITNESS, ego, fact, book.ask(ego, fact, None), truth)
        claim = typed(NameValue(name=book.names[fact.subject]), TermValue(text=fact.item))
        absent = Draft(
            Family.WITNESS, other, heard.query, {"expected_response": "abstain", "claim": claim}, (), fact.fact_id,
            asker=other, no_evidence=True,
        )  # fmt: skip
        absent.uses, absent.last_day = (fact.fact_id,), heard.last_day
        heard.wanted = absent.wanted = book.wanted("detail", ego, fact, None)
        return [heard, absent]
    return None


def _detail_draft(book: Book, family: Family, ego: str, fact: Fact, query: str, truth: Mapping[str, object]) -> Draft:
    evidence = tuple(book.statements(ego, fact.fact_id))
    truth = {**truth, "source_session": evidence[0].session_id}
    draft = Draft(family, ego, query, truth, evidence, fact.fact_id, asker=ego)
    draft.uses, draft.last_day = (fact.fact_id,), evidence[-1].day
    draft.wanted = book.wanted("detail", ego, fact, ego)
    draft.difficulty = "easy" if len(evidence) > 1 else "medium"
    draft.extra["interference"] = book.interference(ego, fact)
    return draft
