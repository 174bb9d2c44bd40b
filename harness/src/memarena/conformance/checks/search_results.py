"""SRC: what a search returns: everything that was ingested, in a sound order, the best of it within a bound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import by_itself, differs, score_change, scores_differ, seen
from memarena.conformance.fixtures import Fact

_TURNS = 64
_RANKED = 7
_DATE_CHARS = 10
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2}))?", re.ASCII
)  # fmt: skip


def _ranked(backend: BackendUnderTest) -> tuple[NamespaceFixture, list[str]]:
    """Sessions that share a word, and for three of them a question that only this one matches fully."""
    ns = backend.namespace()
    shared = backend.words.next()
    own = [backend.words.next() for _ in range(_RANKED)]
    ns.commit(ns.frames(*(ns.session(f"The {shared} was seen with the {word}.") for word in own)))
    ns.items(Fact(f"The {shared} was seen with the {own[0]}.", f"{own[0]}?", own[0]))
    return ns, [f"{shared} {own[index]}?" for index in (0, _RANKED // 2, _RANKED - 1)]


@check("src.order", "SRC-1", "SRC-3", applies=requirements.ranking)
def order(backend: BackendUnderTest) -> None:
    """The order is not worst first, and higher scores are better."""
    ns, questions = _ranked(backend)
    rising, worst_kept, shown, orders = 0, 0, "", set()
    for text in questions:
        free = ns.search(text).items
        values = [item.score for item in free]
        orders.add(tuple(item.text for item in free))
        if len(set(values)) < 2:
            return  # no scores to hold the order to
        if values[-1] > values[0] and all(a <= b for a, b in pairwise(values)):
            rising, shown = rising + 1, ", ".join(f"{value:.4g}" for value in values)
        question = ns.question(text)
        question.max_items = 1
        kept = ns.expect_ok(partial(backend.search, question), "max_items 1").items
        lowest = {item.text for item in free if item.score == min(values)}
        worst_kept += bool(kept) and kept[0].text in lowest
    if len(orders) == 1:
        return  # the question does not decide the order: it may be that of time
    if rising == len(questions):
        raise BrokenError(
            f"for each of {rising} questions scores rise from the first item to the last ({shown}): the items come "
            "worst first, or the scores are distances"
        )
    if worst_kept == len(questions):
        raise BrokenError("with max_items 1 the item of the lowest score is kept, for each of three questions")


@check("src.exact-bound", "SRC-2", "SRC-12", applies=requirements.ranking)
def exact_bound(backend: BackendUnderTest) -> None:
    """Max_items takes away only what is above it."""
    ns, questions = _ranked(backend)
    free = ns.search(questions[0]).items
    for bound in range(1, len(free) + 2):
        question = ns.question(questions[0])
        question.max_items = bound
        response = ns.expect_ok(partial(backend.search, question), f"max_items {bound}")
        returned, truncated = response.items, response.truncated
        if len(returned) == len(free) and truncated:
            raise BrokenError(f"with max_items {bound} all {len(free)} items are returned, and truncated is set")
        if len(returned) != min(bound, len(free)):
            raise BrokenError(f"with max_items {bound} {len(returned)} items are returned, without it {len(free)}")


@check("src.events", "SRC-1", applies=requirements.recall, advisory=True)
def events(backend: BackendUnderTest) -> None:
    """What happened is returned, not turns alone."""
    ns, fact, other = backend.namespace(), backend.fact(), backend.fact()
    event = fixtures.event(backend.new_id(), f"A storm named {fact.value} passed over the harbour.")
    ns.commit(ns.frames(ns.session(other.statement), events=[event]))
    items = ns.search(fact.question).items
    if not any(event.text in item.text for item in items):
        raise BrokenError(f"the event {event.text!r} was committed, but is not returned ({seen(items)})")


@check("src.earlier-scores", "SRC-5", applies=requirements.stable_time_travel)
def earlier_scores(backend: BackendUnderTest) -> None:
    """With TIME_TRAVEL later days change neither items nor scores of an earlier day."""
    ns = backend.namespace()
    if backend.keeps_words:
        rare, common = backend.words.next(), backend.words.next()
        texts: Sequence[str] = (f"The {rare} is by the river.", f"The {common} is by the river.", "The river is high.")
        question, later = f"{rare} {common} river?", f"The {common} again."
    else:
        fact = backend.fact()
        texts, question, later = (fact.statement,), fact.question, backend.fact().statement
    ns.commit(ns.frames(*(ns.session(text) for text in texts)))
    before = ns.stable_items(question)
    for _ in range(3):
        ns.commit(ns.frames(*(ns.session(later) for _ in range(3))))
    after = ns.search(question, as_of_day=0).items
    if differs(before, after) or scores_differ(before, after):
        cause = by_itself(after, lambda: ns.search(question, as_of_day=0).items)
        raise BrokenError(f"as of day 0 {cause or 'later days change'} items or scores: {score_change(before, after)}")
