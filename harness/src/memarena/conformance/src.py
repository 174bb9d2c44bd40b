"""SRC: a search shows what is there, as of the right day, within its bounds, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import needs
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.models import count_tokens
from memarena.conformance.subject import Life, Subject, differs, expect_refused, shows

_REPEATS = 4
_FACTS = 4
_WIDE = "運河のそばで待っています。" * 6

Edit = Callable[[pb.SearchRequest], object]

REQUIRED: dict[str, Edit] = {
    "namespace": lambda q: q.ClearField("namespace"),
    "query_id": lambda q: q.ClearField("query_id"),
    "text": lambda q: q.ClearField("text"),
    "asked_at": lambda q: q.ClearField("asked_at"),
    "requester": lambda q: q.ClearField("requester"),
    "requester.kind": lambda q: q.requester.CopyFrom(pb.Requester()),
    "model_access.base_url": lambda q: q.model_access.ClearField("base_url"),
    "model_access.token": lambda q: q.model_access.ClearField("token"),
    "model_access.models.name": lambda q: q.model_access.models[0].ClearField("name"),
    "model_access.models.role": lambda q: q.model_access.models[0].ClearField("role"),
}
"""REQUIRED fields of a question by path, and what empties them."""

OUT_OF_PLACE: dict[str, tuple[str, pb.Requester]] = {
    "a known person without an id": (
        "requester.participant_id",
        pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, display_name="Omar Haddad"),
    ),
    "a known person without a name": (
        "requester.display_name",
        pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id="p1"),
    ),
    "the owner with an id": (
        "requester.participant_id",
        pb.Requester(kind=pb.REQUESTER_KIND_OWNER, participant_id="p0"),
    ),
    "an anonymous requester with a name": (
        "requester.display_name",
        pb.Requester(kind=pb.REQUESTER_KIND_ANONYMOUS, display_name="Omar Haddad"),
    ),
}


def with_models(subject: Subject, question: pb.SearchRequest) -> pb.SearchRequest:
    """A copy with a model access whose token is good for nothing any more: only its form matters."""
    copy = pb.SearchRequest()
    copy.CopyFrom(question)
    with subject.access("Search") as access:
        copy.model_access.CopyFrom(access)
    return copy


def _seen(life: Life, question: pb.SearchRequest, what: str = "a sound question") -> pb.SearchResponse:
    return life.expect_ok(partial(life.subject.search, question), what)


def _told(subject: Subject) -> tuple[Life, pb.SearchRequest]:
    """A life with a few facts, and a question that asks for all of them."""
    life = subject.life()
    facts = [subject.fact() for _ in range(_FACTS)]
    life.tell(*facts[:2])
    life.tell(*facts[2:])
    life.expect_visible(facts[-1])
    if not subject.keeps_words:
        return life, life.question(facts[-1].question)
    return life, life.question(" ".join(fact.question for fact in facts))


@check("src.finds", "SRC-1", "SRC-3", "SRC-6", title="what was told is found, day after day, in sound items")
def finds(subject: Subject) -> None:
    life = subject.life()
    for day in (0, 1, 4):
        fact = subject.fact()
        life.tell(fact, day=day)
        life.expect_visible(fact)
        response = life.search(fact.question)
        if response.visible_through_day != day:
            raise BrokenError(f"as of day {day} visible_through_day is {response.visible_through_day}")
        for place, item in enumerate(response.items):
            if not item.text:
                raise BrokenError(f"items[{place}].text is empty")
            if not math.isfinite(item.score):
                raise BrokenError(f"items[{place}].score is {item.score}")


@check(
    "src.required",
    "GEN-3",
    "ERR-2",
    "SRC-9",
    title="each REQUIRED field of a question that is missing is refused by its name",
)
def required(subject: Subject) -> None:
    life = subject.life()
    life.tell(subject.fact())
    sound = with_models(subject, life.question("What?"))
    for path, edit in REQUIRED.items():
        question = pb.SearchRequest()
        question.CopyFrom(sound)
        edit(question)
        expect_refused(
            partial(subject.wire.search, question), "INVALID_ARGUMENT", f"a question without {path}", field=path
        )
    for what, (path, requester) in OUT_OF_PLACE.items():
        question = life.question("What?")
        question.requester.CopyFrom(requester)
        expect_refused(partial(subject.search, question), "INVALID_ARGUMENT", what, field=path)
    life.search("What?")


@check("src.max-items", "SRC-2", title="no more items than max_items are returned")
def max_items(subject: Subject) -> None:
    life, question = _told(subject)
    free = _seen(life, question).items
    if not free:
        raise BrokenError("without max_items nothing is found")
    for bound in (1, 2):
        question.max_items = bound
        found = _seen(life, question).items
        if len(found) > bound:
            raise BrokenError(f"{len(found)} items, max_items is {bound}")
        if not found:
            raise BrokenError(f"with max_items {bound} nothing is found, without it {len(free)} items are")


@check(
    "src.max-context-tokens",
    "SRC-2",
    title="the items' texts together count no more than max_context_tokens",
    applies=needs.counts_bytes,
)
def max_context_tokens(subject: Subject) -> None:
    life, question = _told_widely(subject) if subject.keeps_words else _told(subject)
    free = _seen(life, question).items
    if not free:
        raise BrokenError("without max_context_tokens nothing is found")
    total = _tokens(free)
    for bound in (total, max(1, total // 2), 5, 1):
        question.max_context_tokens = bound
        found = _seen(life, question).items
        if _tokens(found) > bound:
            raise BrokenError(f"the items count {_tokens(found)} tokens, max_context_tokens is {bound}")
        if bound == total and not found:
            raise BrokenError(f"with max_context_tokens {bound}, which all items fit, nothing is found")


def _told_widely(subject: Subject) -> tuple[Life, pb.SearchRequest]:
    """As above, in words of three bytes a letter: whoever counts letters is above the bound in whatever order."""
    life, facts = subject.life(), [subject.fact() for _ in range(_FACTS)]
    life.commit(life.frames(*(life.session(f"{fact.statement} {_WIDE}") for fact in facts)))
    life.expect_visible(facts[-1])
    return life, life.question(" ".join(fact.question for fact in facts))


def _tokens(items: Sequence[pb.MemoryItem]) -> int:
    return sum(count_tokens(item.text) for item in items)


@check(
    "src.sources",
    "SRC-4",
    title="items name only sessions and turns of their namespace, and with PROVENANCE do name them",
)
def sources(subject: Subject) -> None:
    life, fact = subject.life(), subject.fact()
    # Between other turns and after another session, so that a neighbour's id is another one.
    other, told = life.session(subject.fact().statement), life.session("Good morning.", fact.statement, "See you.")
    life.commit(life.frames(other, told))
    items = life.items(fact)
    sessions = {session.session_id: {turn.turn_id for turn in session.turns} for session in life.sessions}
    turns = {turn for said in sessions.values() for turn in said}
    for place, item in enumerate(items):
        if foreign := set(item.source_session_ids) - set(sessions):
            raise BrokenError(f"items[{place}] names the session {sorted(foreign)[0]!r}, which was never ingested")
        if foreign := set(item.source_turn_ids) - turns:
            raise BrokenError(f"items[{place}] names the turn {sorted(foreign)[0]!r}, which was never ingested")
    if subject.has(pb.CAPABILITY_PROVENANCE):
        holders = [item for item in items if shows([item], fact, verbatim=subject.keeps_words)]
        if not any(told.session_id in item.source_session_ids for item in holders):
            raise BrokenError("PROVENANCE is declared, but the item that holds a fact does not name its session")
        turn = told.turns[1].turn_id
        if not any(turn in item.source_turn_ids or not item.source_turn_ids for item in holders):
            raise BrokenError("PROVENANCE is declared, but the item that holds a fact names other turns than its own")


@check("src.later-day", "SRC-5", title="as_of_day after the last committed day is refused")
def later_day(subject: Subject) -> None:
    life = subject.life()
    life.tell(subject.fact(), day=2)
    for day in (3, 4_000_000_000):
        question = life.question("What?", as_of_day=2)
        question.as_of_day = day
        expect_refused(
            partial(subject.search, question), "FAILED_PRECONDITION", f"as_of_day {day}, the last day being 2"
        )
    life.search("What?")


@check(
    "src.earlier-day",
    "SRC-5",
    title="without TIME_TRAVEL as_of_day before the last committed day is refused",
    applies=needs.no_time_travel,
)
def earlier_day(subject: Subject) -> None:
    life, first, second = subject.life(), subject.fact(), subject.fact()
    life.tell(first)
    life.expect_visible(first)
    life.tell(second, day=2)
    life.expect_visible(second)
    for day in (0, 1):
        question = life.question(first.question, as_of_day=day)
        expect_refused(
            partial(subject.search, question), "FAILED_PRECONDITION", f"as_of_day {day}, the last day being 2"
        )


@check(
    "src.time-travel",
    "SRC-5",
    "SRC-6",
    title="with TIME_TRAVEL an earlier day shows what was there then, and nothing later",
    applies=needs.time_travel,
)
def time_travel(subject: Subject) -> None:
    life = subject.life()
    told = {day: subject.fact() for day in (1, 3, 6)}
    for day, fact in told.items():
        life.tell(fact, day=day)
        life.expect_visible(fact)
    for as_of, last in ((6, 6), (5, 3), (3, 3), (2, 1), (1, 1)):
        for day, fact in told.items():
            if day > last:
                life.expect_hidden(fact, f"it was told on day {day}, after day {as_of}", as_of_day=as_of)
            elif day == last or subject.keeps_words:
                life.expect_visible(fact, as_of_day=as_of)
        if (said := life.search("What?", as_of_day=as_of).visible_through_day) != last:
            raise BrokenError(f"as of day {as_of} visible_through_day is {said}, expected {last}")
    question = life.question("What?", as_of_day=0)
    expect_refused(partial(subject.search, question), "FAILED_PRECONDITION", "as_of_day before the first committed day")


@check("src.repeatable", "SRC-7", title="the same Search returns the same items", applies=needs.stable_search)
def repeatable(subject: Subject) -> None:
    life, question = _told(subject)
    before = _seen(life, question).items
    if not before:
        raise BrokenError("nothing is found")
    for number in range(_REPEATS):
        question.query_id = subject.new_id()
        if differs(before, _seen(life, question).items):
            raise BrokenError(f"repetition {number + 1} of a Search returns other items")


@check("src.options", "SRC-8", "DSC-5", title="undeclared and repeated options are refused")
def options(subject: Subject) -> None:
    life = subject.life()
    life.tell(subject.fact())
    declared = {option.key: option.default_value for option in subject.described.options}
    unknown = "no_such_option"
    while unknown in declared:
        unknown += "_"
    faults = {"an undeclared option": [pb.Option(key=unknown, value="1")]}
    keys = sorted(key for key, default in declared.items() if default)
    if keys:
        sound = pb.Option(key=keys[0], value=declared[keys[0]])
        faults["an option that is given twice"] = [sound, sound]
    for what, sent in faults.items():
        question = life.question("What?")
        question.options.extend(sent)
        expect_refused(partial(subject.search, question), "INVALID_ARGUMENT", what, field="options")
    question = life.question("What?")
    question.options.extend(pb.Option(key=key, value=declared[key]) for key in keys)
    _seen(life, question, "every option with its default")


@check("src.requesters", "SRC-9", title="an owner, a stranger who is known by name and an anonymous one may ask")
def requesters(subject: Subject) -> None:
    life, fact = subject.life(), subject.fact()
    life.tell(fact)
    life.expect_visible(fact)
    for requester in (
        pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id="never-seen", display_name="Ada Moreau"),
        pb.Requester(
            kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id="p1", display_name="Omar Haddad", relationship="friend"
        ),
        pb.Requester(kind=pb.REQUESTER_KIND_ANONYMOUS),
    ):
        question = life.question(fact.question)
        question.requester.CopyFrom(requester)
        _seen(life, question, f"a question of {requester.display_name or 'an anonymous requester'}")
