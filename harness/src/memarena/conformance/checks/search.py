"""SRC: a search shows what is there, as of the right day, within its bounds, and changes nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.checks.limits import exhausted
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import (
    differs,
    expect_refused,
    mentions,
    score_change,
    scores_differ,
    seen,
    shows,
)
from memarena.conformance.fixtures import Fact, edited
from memarena.conformance.scripted_models import count_tokens

_REPEATS = 4
_HIGH_DAYS = (65_537, 2**31 + 1, 2**32 - 1)
"""Days that look early to a backend that keeps an index in 16 bits, or in 32 bits with a sign."""
_FACTS, _MANY_FACTS = 4, 60
_NEAR_ALL = (_MANY_FACTS - 1, _MANY_FACTS, _MANY_FACTS + 1)
_WIDE = "運河のそばで待っています。" * 6
_SMALL_BOUNDS, _RANKED = 24, 7
_CLOCK_S = 1.1  # a clock of whole seconds, too

REQUIRED = (
    *("namespace", "query_id", "text", "asked_at", "requester", "requester.kind"),
    *(f"model_access.{name}" for name in ("base_url", "token", "models.name", "models.role")),
)
"""Paths of the REQUIRED fields of a question."""

_KNOWN, _OWNER, _ANYONE = (
    pb.REQUESTER_KIND_KNOWN_PERSON, pb.REQUESTER_KIND_OWNER, pb.REQUESTER_KIND_ANONYMOUS)  # fmt: skip
OUT_OF_PLACE: dict[str, tuple[str, pb.Requester]] = {
    "a known person without an id": ("participant_id", pb.Requester(kind=_KNOWN, display_name="Omar Haddad")),
    "a known person without a name": ("display_name", pb.Requester(kind=_KNOWN, participant_id="p1")),
    "the owner with an id": ("participant_id", pb.Requester(kind=_OWNER, participant_id="p0")),
    "an anonymous requester with a name": ("display_name", pb.Requester(kind=_ANYONE, display_name="Omar Haddad")),
}


def with_models(backend: BackendUnderTest, question: pb.SearchRequest) -> pb.SearchRequest:
    """Return a copy with a model access whose token is no longer valid: only its form matters."""
    copy = pb.SearchRequest()
    copy.CopyFrom(question)
    with backend.access("") as access:
        copy.model_access.CopyFrom(access)
    return copy


def _seen(ns: NamespaceFixture, question: pb.SearchRequest, what: str = "a sound question") -> pb.SearchResponse:
    return ns.expect_ok(partial(ns.backend.search, question), what)


def _filled(backend: BackendUnderTest, count: int = _FACTS) -> tuple[NamespaceFixture, pb.SearchRequest]:
    """Return a namespace with some facts, and a question that asks for all of them."""
    ns = backend.namespace()
    facts = [backend.fact() for _ in range(count)]
    ns.add(*facts[:2])
    ns.add(*facts[2:])
    ns.expect_visible(facts[-1])
    if not backend.keeps_words:
        return ns, ns.question(facts[-1].question)
    return ns, ns.question(" ".join(fact.question for fact in facts))


@check("src.finds", "SRC-1", "SRC-3", "SRC-6")
def finds(backend: BackendUnderTest) -> None:
    """What was ingested is returned, day after day, in sound items."""
    ns = backend.namespace()
    for day in (0, 1, 4, *_HIGH_DAYS):
        ns.add(fact := backend.fact(), day=day)
        ns.expect_visible(fact)
        response = ns.search(fact.statement)  # in the very words of a text, where a distance is 0
        if response.visible_through_day != day:
            raise BrokenError(f"as of day {day} visible_through_day is {response.visible_through_day}")
        if unsound := [item for item in response.items if not item.text or not math.isfinite(item.score)]:
            raise BrokenError(f"an item has the text {unsound[0].text[:60]!r} and the score {unsound[0].score}")


@check("src.required", "GEN-3", "ERR-2", "SRC-9")
def required(backend: BackendUnderTest) -> None:
    """Each REQUIRED field of a question that is missing is refused by its name."""
    ns, _ = backend.filled()
    sound = with_models(backend, ns.question("What?"))
    for path in REQUIRED:
        question = edited(sound, path)
        expect_refused(partial(backend.wire.search, question), "INVALID_ARGUMENT", f"Search without {path}", field=path)
    for what, (path, requester) in OUT_OF_PLACE.items():
        question = ns.question("What?")
        question.requester.CopyFrom(requester)
        ns.refuse(question, "INVALID_ARGUMENT", what, field=f"requester.{path}")
    ns.search("What?")


@check("src.max-items", "SRC-2", "SRC-12", "LIM-3")
def max_items(backend: BackendUnderTest) -> None:
    """Max_items takes away only what is above it, and is refused above a limit that is declared."""
    exact = requirements.ranking(backend) is None
    ns, question = _filled(backend, _MANY_FACTS if exact else _FACTS)
    free = _seen(ns, question).items
    if not free:
        raise BrokenError("without max_items nothing is returned")
    most, limit = len(free), backend.described.limits.max_items
    for bound in (1, 2, most // 2, most - 1, most, most + 1, *_NEAR_ALL) if exact else (1, 2):
        if not bound or 0 < limit < bound:
            continue
        question.max_items = bound
        response = _seen(ns, question, f"max_items {bound}")
        count = len(response.items)
        # Above what it returns by itself a memory may return more.
        if count > bound or count < (min(bound, most) if exact else 1):
            raise BrokenError(f"with max_items {bound} {count} items are returned, without it {most}")
        if response.truncated and (count < bound or count == _MANY_FACTS) and exact:
            raise BrokenError(f"with max_items {bound} all {count} items are returned, and truncated is set")
    if limit:
        question.max_items = limit
        _seen(ns, question, f"max_items {limit}")
        question.max_items = limit + 1
        exhausted(ns, question, f"max_items {limit + 1}", "max_items", limit)


@check("src.max-context-tokens", "SRC-2", applies=requirements.counts_bytes)
def max_context_tokens(backend: BackendUnderTest) -> None:
    """The items' texts together count no more than max_context_tokens."""
    ns, question = _filled_widely(backend) if backend.keeps_words else _filled(backend)
    free = _seen(ns, question).items
    if not free:
        raise BrokenError("without max_context_tokens nothing is returned")
    total = _tokens(free)
    # One token less than all of them: too little for whoever rounds down. In a row, to cut characters at every byte.
    bounds = [(bound, 0) for bound in (total, max(1, total - 1), max(1, total // 2), *range(1, _SMALL_BOUNDS))]
    # Both at once, now the one below the other and now the other.
    for bound, most in *bounds, (total, 1), (total // 2, len(free)), (total // 2, 1), (_tokens(free[:1]), 2):
        question.max_context_tokens, question.max_items = bound, most
        returned = _seen(ns, question).items
        if backend.keeps_words and any("\ufffd" in item.text for item in returned):
            raise BrokenError(f"{bound} tokens: an item holds U+FFFD: a character was cut in two")
        how = f"with max_context_tokens {bound}{f' and max_items {most}' if most else ''}"
        if _tokens(returned) > bound or (most and len(returned) > most):
            raise BrokenError(f"{how} {len(returned)} items of {_tokens(returned)} tokens are returned")
        fits = bound >= max(_tokens([item]) for item in free)
        least = min(len(free) if bound == total and backend.keeps_words else fits, most or len(free))
        if len(returned) < least:
            shown = f"{len(returned)} items are returned, without it {len(free)} of {total} tokens, each of which fits"
            raise BrokenError(f"{how} {shown}")


def _filled_widely(backend: BackendUnderTest) -> tuple[NamespaceFixture, pb.SearchRequest]:
    """Return the same as `_filled` with letters of three bytes: a memory that counts letters exceeds the bound."""
    ns, facts = backend.namespace(), [backend.fact() for _ in range(_FACTS)]
    ns.commit(ns.frames(*(ns.session(f"{_WIDE} {fact.statement}{'.' * n}") for n, fact in enumerate(facts))))
    ns.expect_visible(facts[-1])
    return ns, ns.question(" ".join(fact.question for fact in facts))


def _tokens(items: Sequence[pb.MemoryItem]) -> int:
    return sum(count_tokens(item.text) for item in items)


@check("src.sources", "SRC-4")
def sources(backend: BackendUnderTest) -> None:
    """Items name only sessions, turns and events of their namespace, and with PROVENANCE the session of a fact."""
    ns, fact = backend.namespace(), backend.fact()
    # Between other turns and other sessions, so that a neighbour's id is another one.
    other, last = ns.session(backend.fact().statement), ns.session("Good night.", "Sleep well.")
    ingested = ns.session("Good morning.", fact.statement, "See you.")
    ns.commit(ns.frames(other, ingested, last))
    ids = {each.session_id for each in (other, ingested, last)}
    ids |= {turn.turn_id for each in (other, ingested, last) for turn in each.turns}
    holders, items = set[str](), ns.items(fact)
    for item in items:
        if foreign := {*item.source_session_ids, *item.source_turn_ids, *item.source_event_ids} - ids:
            raise BrokenError(f"the item {item.text[:60]!r} names {min(foreign)!r}, which was never ingested")
        if shows([item], fact, verbatim=backend.keeps_words):
            holders.update(item.source_session_ids)
    if backend.has(pb.CAPABILITY_PROVENANCE) and ingested.session_id not in holders:
        raise BrokenError("PROVENANCE is declared, but the item that holds a fact does not name its session")


@check("src.later-day", "SRC-5")
def later_day(backend: BackendUnderTest) -> None:
    """As_of_day after the last committed day is refused, without TIME_TRAVEL before it, too."""
    ns = backend.namespace()
    ns.add(backend.fact(), day=2)
    for day in (3, 4_000_000_000, *(() if backend.has(pb.CAPABILITY_TIME_TRAVEL) else (0, 1))):
        question = ns.question("What?", as_of_day=2)
        question.as_of_day = day
        ns.refuse(question, "FAILED_PRECONDITION", f"as_of_day {day}, the last day being 2")
    ns.search("What?")


@check("src.time-travel", "SRC-5", "SRC-6", applies=requirements.time_travel)
def time_travel(backend: BackendUnderTest) -> None:
    """With TIME_TRAVEL an earlier day shows what was there then, and nothing later."""
    ns = backend.namespace()
    ingested = {day: backend.fact() for day in (1, 3, 6, *_HIGH_DAYS)}
    happened = {day: backend.fact() for day in (2, 6, 8) if backend.keeps_words}  # on days 2 and 8 nothing is said
    days = sorted({*ingested, *happened})
    for day in days:
        events = [fixtures.event(backend.new_id(), happened[day].statement, day)] if day in happened else []
        sessions = [ns.session(ingested[day].statement, day=day)] if day in ingested else []
        ns.commit(ns.frames(*sessions, day=day, events=events))
        ns.expect_visible(*(ingested[day] for _ in sessions))
    for as_of in (7, 6, 5, 3, 1, *_HIGH_DAYS):
        last = max(day for day in days if day <= as_of)
        for day, fact in (*ingested.items(), *happened.items()):
            if day > last:
                ns.expect_hidden(fact, f"it was ingested on day {day}, after day {as_of}", as_of_day=as_of)
            elif fact is ingested.get(day) and (day == last or backend.keeps_words):
                ns.expect_visible(fact, as_of_day=as_of)
        if (reported := ns.search("What?", as_of_day=as_of).visible_through_day) != last:
            raise BrokenError(f"as of day {as_of} visible_through_day is {reported}, expected {last}")
    question = ns.question("What?", as_of_day=0)
    ns.refuse(question, "FAILED_PRECONDITION", "as_of_day before the first committed day")


@check("src.repeatable", "SRC-7", applies=requirements.stable_search)
def repeatable(backend: BackendUnderTest) -> None:
    """The same Search returns the same items with the same scores."""
    ns, question = _filled(backend)
    before = _seen(ns, question).items
    if not before:
        raise BrokenError("nothing is returned")
    for number in range(_REPEATS):
        question.query_id = backend.new_id()
        after = _seen(ns, question).items
        if differs(before, after) or scores_differ(before, after):
            what = "items" if differs(before, after) else "scores"
            raise BrokenError(f"repeat {number + 1} of a Search returns other {what}: {score_change(before, after)}")


@check("src.options", "SRC-8", "DSC-5")
def options(backend: BackendUnderTest) -> None:
    """Undeclared and repeated options are refused."""
    ns, _ = backend.filled()
    declared = {option.key: option.default_value for option in backend.described.options}
    unknown = "no_such_option"
    while unknown in declared:
        unknown += "_"
    # With a value that another key takes, so that only the key is at fault.
    faults = {"an undeclared option": [pb.Option(key=unknown, value=max(declared.values(), default="") or "1")]}
    keys = sorted(key for key, default in declared.items() if default)
    if keys:
        sound = pb.Option(key=keys[0], value=declared[keys[0]])
        faults["an option that is passed twice"] = [sound, sound]
    for key in (key for key in keys if declared[key].isdecimal()):
        value = f"{declared[key]}x"
        faults[f"{key} {value!r}, whose default is {declared[key]!r},"] = [pb.Option(key=key, value=value)]
    for what, sent in faults.items():
        question = ns.question("What?")
        question.options.extend(sent)
        ns.refuse(question, "INVALID_ARGUMENT", what, field="options")
    question = ns.question("What?")
    question.options.extend(pb.Option(key=key, value=declared[key]) for key in keys)
    _seen(ns, question, "every option with its default")


@check("src.requesters", "SRC-9")
def requesters(backend: BackendUnderTest) -> None:
    """An owner, a stranger who is known by name and an anonymous one may ask."""
    ns, fact = backend.filled()
    ns.expect_visible(fact)
    for requester in (
        pb.Requester(kind=_KNOWN, participant_id="never-seen", display_name="Ada Moreau"),
        pb.Requester(kind=_KNOWN, participant_id="p1", display_name="Omar Haddad", relationship="friend"),
        pb.Requester(kind=_ANYONE),
    ):
        question = ns.question(fact.question)
        question.requester.CopyFrom(requester)
        _seen(ns, question, f"a question of {requester.display_name or 'an anonymous requester'}")


@check("src.order", "SRC-1", "SRC-3", applies=requirements.ranking)
def order(backend: BackendUnderTest) -> None:
    """The order is not worst first, and higher scores are better."""
    ns, shared = backend.namespace(), backend.words.next()
    own = [backend.words.next() for _ in range(_RANKED)]
    ns.add(*(facts := [Fact(f"The {shared} was seen with the {word}.", f"{word}?", word) for word in own]))
    ns.items(facts[0])
    questions = [f"{shared} {own[index]}?" for index in (0, _RANKED // 2, _RANKED - 1)]
    rising, lost, shown, orders = 0, 0, "", set()
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
        best = ns.expect_ok(partial(backend.search, question), "max_items 1").items
        highest = {item.text for item in free if item.score == max(values)}
        lost += bool(best) and best[0].text not in highest
    if len(orders) == 1:
        return  # the question does not decide the order: it may be that of time
    if rising == len(questions):
        raise BrokenError(
            f"for each of {rising} questions scores rise from the first item to the last ({shown}): the items come "
            "worst first, or the scores are distances"
        )
    if lost > 1:
        raise BrokenError(f"with max_items 1 the item of the highest score is left out, for {lost} of three questions")


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
    """Return a namespace, a question in rare and in common words, and a text that makes a word of it more common."""
    ns, facts = backend.namespace(), (backend.fact(), backend.fact())
    if not backend.keeps_words:
        ns.add(*facts)
        return ns, facts[0].question, backend.fact().statement
    rare, common = backend.words.next(), backend.words.next()
    texts = (f"The {rare} is by the river.", f"The {common} is by the river.", "The river is high.", "Good night.")
    ns.commit(ns.frames(*(ns.session(text) for text in texts)))
    return ns, f"{rare} {common} river?", f"The {common} again."


def expect_unchanged(ns: NamespaceFixture, question: str, other: NamespaceFixture, later: str, what: str) -> None:
    """A question as of the last day returns the same after three days of ``other`` in which a text comes again."""
    before, day = ns.stable_items(question), ns.last_day
    for _ in range(3):
        other.commit(other.frames(*(other.session(later) for _ in range(3))))
    after = ns.search(question, as_of_day=day).items
    if differs(before, after) or scores_differ(before, after):
        time.sleep(_CLOCK_S)
        again = ns.search(question, as_of_day=day).items
        by_itself = differs(after, again) or scores_differ(after, again)
        cause = "with nothing ingested in between, a clock or chance changes" if by_itself else what
        raise BrokenError(f"as of day {day} {cause} items or scores: {score_change(before, after)}")


@check("src.earlier-scores", "SRC-5", applies=requirements.stable_time_travel)
def earlier_scores(backend: BackendUnderTest) -> None:
    """With TIME_TRAVEL later days change neither items nor scores of an earlier day."""
    ns, question, later = scored(backend)
    expect_unchanged(ns, question, ns, later, "later days change")


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
