"""SRC: what a search returns: everything that was ingested, in a sound order, the best of it within a bound."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import by_itself, differs, mentions, score_change, scores_differ, seen
from memarena.conformance.fixtures import Fact

_RANKED = 7


@check("src.order", "SRC-1", "SRC-3", applies=requirements.ranking)
def order(backend: BackendUnderTest) -> None:
    """The order is not worst first, and higher scores are better."""
    ns, shared = backend.namespace(), backend.words.next()
    own = [backend.words.next() for _ in range(_RANKED)]
    ns.commit(ns.frames(*(ns.session(f"The {shared} was seen with the {word}.") for word in own)))
    ns.items(Fact(f"The {shared} was seen with the {own[0]}.", f"{own[0]}?", own[0]))
    questions = [f"{shared} {own[index]}?" for index in (0, _RANKED // 2, _RANKED - 1)]
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


@check("src.events", "SRC-1", applies=requirements.recall, advisory=True)
def events(backend: BackendUnderTest) -> None:
    """What happened is returned, not turns alone."""
    ns, fact, other = backend.namespace(), backend.fact(), backend.fact()
    event = fixtures.event(backend.new_id(), f"A storm named {fact.value} passed over the harbour.")
    ns.commit(ns.frames(ns.session(other.statement), events=[event]))
    items = ns.search(fact.question).items
    if not any(event.text in item.text for item in items):
        raise BrokenError(f"the event {event.text!r} was committed, but is not returned ({seen(items)})")


def scored(backend: BackendUnderTest) -> tuple[NamespaceFixture, str, str]:
    """A namespace, a question in rare and in common words, and a text that makes a word of it more common."""
    ns, facts = backend.namespace(), (backend.fact(), backend.fact())
    if not backend.keeps_words:
        ns.add(*facts)
        return ns, facts[0].question, backend.fact().statement
    rare, common = backend.words.next(), backend.words.next()
    texts = (f"The {rare} is by the river.", f"The {common} is by the river.", "The river is high.", "Good night.")
    ns.commit(ns.frames(*(ns.session(text) for text in texts)))
    return ns, f"{rare} {common} river?", f"The {common} again."


@check("src.earlier-scores", "SRC-5", applies=requirements.stable_time_travel)
def earlier_scores(backend: BackendUnderTest) -> None:
    """With TIME_TRAVEL later days change neither items nor scores of an earlier day."""
    ns, question, later = scored(backend)
    before = ns.stable_items(question)
    for _ in range(3):
        ns.commit(ns.frames(*(ns.session(later) for _ in range(3))))
    after = ns.search(question, as_of_day=0).items
    if differs(before, after) or scores_differ(before, after):
        cause = by_itself(after, lambda: ns.search(question, as_of_day=0).items)
        raise BrokenError(f"as of day 0 {cause or 'later days change'} items or scores: {score_change(before, after)}")


ODD = (
    '"',
    'What did she call "the boat',
    "'; DROP TABLE turns; --",
    "NOT this OR that AND (more",
    "NEAR(one two, 3)",
    "name:canoe^2~ +a -b *",
    "100% of a_b?",
    "a/b\\c [d] {e} <f> & $g @h #i | `j` !",
    "???",
    "…",
    "🙂",
    "\t\n ",
    "the",
    "?" * 500,
)
"""Questions that are operators, quotes, wild cards or nothing to look for in one query language or another."""


@check("src.any-question", "SRC-1", "TXT-2")
def any_question(backend: BackendUnderTest) -> None:
    """Quotes, operators and bare signs in a question are text like any other."""
    ns, fact = backend.filled()
    ns.expect_visible(fact)
    for text in ODD:
        ns.expect_ok(partial(backend.search, ns.question(text)), f"the question {text[:40]!r}")
    for mark in ('"', "'", "*", "(", ":", "-", "%"):
        question = f"{fact.question} {mark}"
        returned = ns.expect_ok(partial(backend.search, ns.question(question)), f"the question {question!r}").items
        if not mentions(returned, fact):
            raise BrokenError(f"the question {question!r} lacks what {fact.question!r} returns ({seen(returned)})")
