"""LIFE: one rich life is fed, asked, killed, and asked again: everything is returned with its sources, and stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.checks.health import restarted
from memarena.conformance.errors import BrokenError, SkippedError
from memarena.conformance.expectations import differs, mentions, quoted, score_change, scores_differ
from memarena.conformance.fixtures import Fact
from memarena.conformance.life import TWICE
from memarena.conformance.lived import Items, Lived, Neighbour, lived, words_of
from memarena.conformance.scripted_models import count_tokens
from memarena.conformance.wire import RefusedError

_SOUND = 0.9
"""Share of entries from which a memory is sound as a whole: a kind is lost if less than half of it is returned."""
_PROMPTS = 8  # that are compared with Retrieved, about
_BOUND_TOKENS = 60
_SCAFFOLD_BYTES = 8192  # of a prompt: all but its items and question
_ITEM_LAYOUT_BYTES = 256  # of a prompt: the layout around each item
_ROUNDS = 3
_AT_ONE_TIME = 16  # searches of one namespace
_LONG_QUESTION_CHARS = 4_000
_WILD = ".*?_%"  # signs that are wild cards in some query language
_OVERLOADED = ("UNAVAILABLE", "DEADLINE_EXCEEDED")


def _fed(backend: BackendUnderTest) -> Lived:
    life = lived(backend)
    if life.lost or not life.returned:
        raise SkippedError(life.lost or "the life could not be fed: life.ingested says why")
    if not any(life.returned.values()):
        raise BrokenError(f"of {len(life.returned)} things that were ingested none is returned")
    return life


@check("life.ingested", "SRC-1", "ING-1", "ING-3", "ING-4", "ING-7", "ING-10", "TXT-2", "TXT-5", "IDN-3", "IDN-5",
       "IDN-6", "LIM-2", applies=requirements.words)  # fmt: skip
def everything(backend: BackendUnderTest) -> None:
    """Months of a life are ingested, and everything that was ingested is returned by its own words."""
    life = lived(backend)
    for index, was_returned in life.returned_same_day.items():
        each = life.life.entries[index]
        if was_returned or each.group == TWICE:  # which is whole with its second day alone
            continue
        items = life.returned[index] if index in life.returned else life.ask(each)
        if life.contains(each, items):
            raise BrokenError(
                f"{quoted(each.fact)} of day {each.day} was not returned right after its day, and is now: "
                "work on a day was left for later"
            )
    shown = {tuple(item.text for item in items) for items in life.returned.values()}
    if len(shown) == 1 and () not in shown:
        return  # what shows the latest for every question does not search
    groups: dict[str, list[bool]] = {}
    for index, items in life.returned.items():
        each = life.life.entries[index]
        hit = life.returns(each, items)  # asks in more words, too: an entry that ranks low must only be returned at all
        for kind in each.kinds:
            groups.setdefault(kind, []).append(hit)
    events = {group for group in groups if "event" in group}
    if not any(hit for group in events for hit in groups[group]):  # not to keep events is for src.events to report
        groups = {group: hits for group, hits in groups.items() if group not in events}
    for index in life.order():  # by chance a memory that ranks by meaning misses one or two, and not most of a kind
        each = life.life.entries[index]
        if index not in life.returned and (doubted := {*_lost(groups)} & {*each.kinds}):
            hit = life.returns(each, life.ask(each))
            for kind in doubted:
                groups[kind].append(hit)
    hits = [hit for each in groups.values() for hit in each]
    missed = len(hits) - sum(hits)
    lost = sorted(_lost(groups), key=lambda kind: sum(groups[kind]) - len(groups[kind]))
    counted = ", ".join(f"{kind} ({sum(groups[kind])} of {len(groups[kind])} returned)" for kind in lost[:12])
    if missed > len(hits) / 2:
        raise BrokenError(f"of {len(hits)} things {missed} are not returned by their own words: {counted}")
    if lost:
        many = f"{len(lost)} of {len(groups)} kinds are not returned, although {sum(hits)} of {len(hits)} things are"
        raise BrokenError(f"{many}: {counted}")


def _lost(groups: dict[str, list[bool]]) -> list[str]:
    """Return kinds of which less than half is returned, or, if many things are missed, those of which nothing is."""
    hits = [hit for each in groups.values() for hit in each]
    enough = 0.5 if sum(hits) >= _SOUND * len(hits) else 0.01
    return [kind for kind, each in groups.items() if sum(each) < enough * len(each)]


@check("life.sources", "SRC-3", "SRC-4", "SRC-13", "TXT-3", "IDN-7", applies=requirements.words)
def sources(backend: BackendUnderTest) -> None:
    """Items name the sources, times and people that their own text bears out."""
    life = _fed(backend)
    for items in life.returned.values():
        life.audit.check(items)


@check("life.prompts", "ANS-2", "ANS-10", "ANS-11", "IDN-7", applies=requirements.words_and_our_reader)
def prompts(backend: BackendUnderTest) -> None:
    """A prompt holds what Retrieved shows and nothing else, and says who asks as it is."""
    life = _fed(backend)
    asked = [index for index in life.order() if "text" not in life.life.entries[index].group]
    longest = [index for index in life.order() if life.life.entries[index].group.startswith("the end of a text")]
    for number, index in enumerate([*longest[:1], *asked[:: max(1, len(asked) // _PROMPTS)]]):
        each = life.life.entries[index]
        # By its end alone a long text comes behind all short ones.
        request = life.question(each, each.fact.statement[:_LONG_QUESTION_CHARS] if index in longest else "")
        if number % 2:
            request.text = f"{life.life.common} {request.text}"
        if number % 3 == 2:  # both bounds for one of them
            request.max_items = 2
        if number % 4 == 1 and requirements.counts_bytes(backend) is None:
            request.max_context_tokens = _BOUND_TOKENS
        items, prompt = life.answer(life.ns, request)
        _keeps_bounds(request, items, prompt)
        if requirements.stable_search(backend) is None:
            searched = backend.search(request).items
            if differs(items, searched):
                raise BrokenError(f"for {request.text!r} Retrieved holds other items than Search: "
                                  f"{score_change(searched, items)}")  # fmt: skip
        if not request.max_context_tokens:  # an item that is cut to fit names what it was cut from
            life.audit.check(items)
        _holds(life, request, items, prompt)
    _askers(life, asked[0])


def _keeps_bounds(request: pb.SearchRequest, items: Items, prompt: str) -> None:
    most = request.max_context_tokens
    if request.max_items and len(items) > request.max_items:
        raise BrokenError(f"max_items {request.max_items}: Retrieved holds {len(items)} items")
    if most and (used := sum(count_tokens(item.text) for item in items)) > most:
        raise BrokenError(f"max_context_tokens {most}: Retrieved counts {used} tokens")
    room = most * 5 + _SCAFFOLD_BYTES + _ITEM_LAYOUT_BYTES * len(items) + len(request.text.encode())
    if most and len(prompt.encode()) > room:
        raise BrokenError(f"max_context_tokens {most}: the prompt has {len(prompt.encode())} bytes, at most {room} fit")


def _holds(life: Lived, request: pb.SearchRequest, items: Items, prompt: str) -> None:
    """Raise BrokenError unless every item is in the prompt, and no other turn or name of the life."""
    in_prompt, retrieved = life.audit.words_in(prompt), life.audit.words_in(" ".join(item.text for item in items))
    # With its layout an item may be above a bound of tokens.
    if not request.max_context_tokens and (lacks := sorted(retrieved - in_prompt)):
        holders = [n for n, item in enumerate(items) if lacks[0] in item.text.lower()]
        raise BrokenError(
            f"the prompt has room and lacks {lacks[0]!r}, which items[{holders[0]}] of {len(items)} in Retrieved holds"
        )
    if more := sorted(in_prompt - retrieved - words_of(request.text)):
        raise BrokenError(f"the prompt holds {more[0]!r} of another turn, which no item of Retrieved holds")
    later = life.life.renamed[1]
    shown = {session for item in items for session in item.source_session_ids}
    renamed = {
        entry.session.session_id
        for entry in life.life.entries
        if entry.session is not None and any(p.display_name == later for p in entry.session.participants)
    }
    if later.lower() in prompt and shown and not shown & renamed:
        raise BrokenError(
            f"the prompt names {later}, and every item is of a day on which the name was {life.life.renamed[0]}"
        )


def _askers(life: Lived, index: int) -> None:
    """Raise BrokenError if a prompt that says who asks lacks the requester's name, or has another person's."""
    names = [f"{life.backend.words.next()} {life.backend.words.next()}" for _ in range(2)]
    known, other = (
        pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id=life.backend.new_id(), display_name=name)
        for name in names
    )
    known.participant_id = life.life.people[1].participant_id  # a person of the life, under another name
    known.relationship, owner = "colleague", pb.Requester(kind=pb.REQUESTER_KIND_OWNER)
    prompt_of, shown = {}, {}
    for who, requester in (("known", known), ("other", other), ("owner", owner),
                           ("anonymous", pb.Requester(kind=pb.REQUESTER_KIND_ANONYMOUS))):  # fmt: skip
        request = life.question(life.life.entries[index])
        request.requester.CopyFrom(requester)
        items, prompt_of[who] = life.answer(life.ns, request)
        shown[who] = [item.text for item in items]
    if shown["known"] != shown["owner"] or shown["other"] != shown["owner"]:
        return  # what is withheld shows in the items
    for who, name, stranger in (("known", names[0], names[1]), ("other", names[1], names[0])):
        if stranger.lower() in prompt_of[who]:
            raise BrokenError(f"{name} asks, and the prompt names {stranger}, who asked before")
    alike = {prompt_of[who] for who in ("owner", "anonymous", "known")}  # all equal: it is not stated who asks
    tells = len(alike) > 1 or "asked by" in prompt_of["owner"]
    for who, name in zip(("known", "other"), names, strict=True):
        if tells and (prompt_of[who] == prompt_of["owner"] or name.lower() not in prompt_of[who]):
            raise BrokenError(
                f"{name} asks, a known person, and the prompt says who asks without the name"
                + (": it is that of the owner's question" if prompt_of[who] == prompt_of["owner"] else "")
            )
    for who in ("owner", "anonymous"):
        if any(name.lower() in prompt_of[who] for name in names):
            raise BrokenError(f"the requester is {who}, and the prompt names a person who asked before")


@check("life.at-once", "GEN-6", "IDN-1", "ANS-3", applies=requirements.words_at_the_same_time)
def at_once(backend: BackendUnderTest) -> None:
    """Eight namespaces are asked at the same time: each finds its own, and its prompt is the same as when alone."""
    life = _fed(backend)
    answers = requirements.our_reader(backend) is None
    stable = requirements.stable_search(backend) is None
    questions = life.questions()
    alone = {ns.namespace: _asked(life, ns, question, answers=answers) for ns, question in questions}

    for ns, _ in questions:
        _expect_own(life, ns, *alone[ns.namespace], "alone")

    def asks(ns: NamespaceFixture, question: str) -> None:
        for _ in range(_ROUNDS):
            items, prompt = _asked(life, ns, question, answers=answers)
            _expect_own(life, ns, items, prompt, "at the same time")
            before, prompted = alone[ns.namespace]
            if stable and differs(before, items):
                raise BrokenError(f"asked at one time, {ns.namespace} finds other items: {score_change(before, items)}")
            if stable and prompt != prompted:
                raise BrokenError(f"asked at the same time, the prompt of {ns.namespace} is another one than alone")

    _several(life)
    with ThreadPoolExecutor(2 * len(questions)) as pool:  # each namespace twice
        begun = [pool.submit(asks, *each) for each in questions * 2]
        for done in begun:
            done.result()


def _expect_own(life: Lived, ns: NamespaceFixture, items: Items, prompt: str, when: str) -> None:
    """Raise BrokenError unless items and prompt hold something of their namespace, and nothing of another."""
    prompted, shown = words_of(prompt), words_of(" ".join(item.text for item in items))
    if ns is not life.ns and not life.unique_words[ns.namespace] & shown:
        raise BrokenError(f"asked {when} for all that it holds, {ns.namespace} returns nothing of it")
    for other, values in life.unique_words.items():
        if other != ns.namespace and (leaked := values & (prompted | shown)):
            where = "the prompt" if leaked & prompted else "an item"
            raise BrokenError(f"asked {when}, {where} of {ns.namespace} holds {min(leaked)!r} of {other}")


def _several(life: Lived) -> None:
    """Send searches of one namespace at the same time, with a question so long that they overlap."""
    plain = (entry.fact.statement for entry in life.life.entries if entry.group == "plain")
    request = life.ns.question(" ".join(plain)[:_LONG_QUESTION_CHARS])
    with life.backend.access("Search") as access:
        request.model_access.CopyFrom(access)
        errors = life.backend.wire.searches(request, _AT_ONE_TIME)
    if busy := [error for error in errors if error.code not in _OVERLOADED]:
        raise BrokenError(f"of {_AT_ONE_TIME} searches of one namespace at a time {len(busy)} were refused: {busy[0]}")


def _asked(life: Lived, ns: NamespaceFixture, question: str, *, answers: bool) -> tuple[Items, str]:
    request = ns.question(question)
    try:
        items = life.backend.search(request).items
    except RefusedError as error:
        if error.code == "ABORTED":
            raise BrokenError(f"a search during another one of its namespace was refused: {error}") from error
        items = ns.expect_ok(partial(life.backend.search, request), "a search during others").items
    if not answers:
        return items, ""
    retrieved, prompt = life.answer(ns, request)
    return (*items, *retrieved), prompt


@check("life.forget", "FGT-1", "FGT-2", "FGT-3", applies=requirements.forget_of_words)
def forget(backend: BackendUnderTest) -> None:
    """What was forgotten is gone with its statistics, and nothing that only resembles it."""
    life = _fed(backend)
    words, common = backend.words, life.life.common
    near: dict[str, tuple[str, str]] = {}
    for sign in _WILD:
        near_name, other = words.next(), words.next()
        near[f"{near_name}{sign}{other}"] = (f"{near_name}{sign}{other}".upper(), f"{near_name}x{other}")
    first, last, different = words.next(), words.next(), words.next()
    near[f"{first} {last}"] = (f"{first} {last}", f"{last} {first} {different} {last}")
    # A subject is who is spoken of, not who speaks.
    near[fixtures.FRIEND.display_name] = (fixtures.FRIEND.display_name, "his sister")
    spoken = [words.of_script("accented Latin") for _ in range(2)]
    near[spoken[0].upper()] = (spoken[0], spoken[1])
    doomed, kept = [], []
    for gone, stays in near.values():
        doomed.append(_about(common, words.next(), gone))
        kept.append(_about(common, words.next(), stays))
    by_words, by_event, by_session, twin, next_to = (_about(common, words.next(), words.next()) for _ in range(5))
    ns, never = backend.namespace(), backend.namespace()
    session_id = backend.new_id()
    # The last event of its day, and not the only one.
    texts = (next_to.statement, f"It happened that {by_event.statement} At noon.")
    happened = [fixtures.event(backend.new_id(), text) for text in texts]
    elsewhere = backend.namespace()
    elsewhere.add(by_words, by_event)
    sessions = [ns.session(gone.statement, stays.statement) for gone, stays in zip(doomed, kept, strict=True)]
    for session in sessions:
        session.turns[1].speaker_id = fixtures.FRIEND.participant_id
    near_id, whole = ns.session(twin.statement), ns.session(by_session.statement)
    longer = ns.session(f"Well, well. {by_words.statement} So it is.")
    near_id.session_id, whole.session_id = session_id.swapcase(), session_id
    ns.commit(ns.frames(*sessions, near_id, longer, whole, events=happened))
    for session in sessions:
        del session.turns[0]
    never.commit(never.frames(*sessions, near_id, events=happened[:1]))
    for each in (ns, never):
        each.add(later := backend.fact())  # what is forgotten is not of the last day
        each.expect_visible(later)
        backend.keep(each)
    ns.expect_visible(*doomed, *kept, by_words, by_session, twin)
    keeps_events = mentions(ns.search(next_to.question).items, next_to)
    for target in (
        *(pb.ForgetRequest(fact_text=fact.statement) for fact in (by_words, by_event)),
        *(pb.ForgetRequest(subject=subject) for subject in near),
        # In other letters, with other blanks, or in another order, it is another text.
        pb.ForgetRequest(fact_text=twin.statement.upper()),
        pb.ForgetRequest(fact_text=twin.statement.replace(" ", "  ")),
        pb.ForgetRequest(fact_text=" ".join(reversed(twin.statement.split()))),
        pb.ForgetRequest(session_id=session_id),
    ):
        target.namespace, kind = ns.namespace, target.WhichOneof("target") or ""
        ns.expect_ok(partial(backend.wire.forget, target), "Forget")
        shown = str(getattr(target, kind)).replace("  ", "␣␣")
        _expect_kept(ns, twin, f"in the session {near_id.session_id!r}, it went with the {kind} {shown!r}")
    life.forgotten.append((ns, [*doomed[1:], by_words, by_event, by_session]))
    for subject, fact in zip(near, doomed, strict=True):
        ns.expect_hidden(fact, f"the subject {subject!r} was to be forgotten")
    for fact in (by_words, by_event):
        ns.expect_hidden(fact, "its words were to be forgotten")
    elsewhere.expect_visible(by_words, by_event)
    if keeps_events:
        _expect_kept(ns, next_to, "it is the event before the one that was to be forgotten")
    ns.expect_hidden(by_session, "its session was to be forgotten")
    for subject, fact in zip(near, kept, strict=True):
        _expect_kept(ns, fact, f"it went with the subject {subject!r}, which is in the turn before and not in this one")
    if requirements.ranking(backend) is None:
        _as_if_never(ns, never, [f"{common} {fact.question}" for fact in (doomed[0], by_session, kept[0])])
    ns.add(doomed[0])
    _expect_kept(ns, doomed[0], "it came by an Ingest after its Forget")


def _expect_kept(ns: NamespaceFixture, fact: Fact, why: str) -> None:
    if not mentions(ns.search(fact.question).items, fact):
        raise BrokenError(f"{quoted(fact)} is not returned: {why}")


def _about(common: str, word: str, name: str) -> Fact:
    return Fact(f"The {common} {word} belongs to {name}, so it is.", f"{word}?", word)


def _as_if_never(ns: NamespaceFixture, never: NamespaceFixture, questions: list[str]) -> None:
    """Raise BrokenError unless scores are those of a namespace that never held the forgotten entries."""
    for question in questions:
        left, clean = ns.search(question).items, never.search(question).items
        scores = {item.text: item for item in clean}
        pairs = [(scores[item.text], item) for item in left if item.text in scores]
        if scores_differ([near_name for near_name, _ in pairs], [other for _, other in pairs]):
            raise BrokenError(
                f"after a Forget the scores for {question!r} are not those of a namespace that never held it: "
                f"{score_change(clean, left)}: statistics of what was forgotten are left"
            )


@check("life.again", "HLT-3", "ING-7", "ING-8", "RST-1", "RST-4", "FGT-2", "SRC-7", applies=requirements.stable_words)
def again(backend: BackendUnderTest) -> None:
    """After SIGKILL, replays of days, and the Reset of a neighbour, everything is returned as before."""
    life = _fed(backend)
    gone = life.to_reset
    questions = life.questions()
    before = [ns.search(question).items for ns, question in questions]

    def as_before(when: str) -> None:
        for (ns, question), items in zip(questions, before, strict=True):
            what = f"{question!r} in {ns.namespace}, {when},"
            _same(what, items, ns.search(question, what=what).items)

    for each in gone:
        each.ns.expect_ok(partial(backend.wire.reset, each.ns.namespace), "Reset")
    as_before(since := f"after the Reset of {' and '.join(each.ns.namespace for each in gone)}")
    if backend.restart is not None:
        since = "after SIGKILL"
        life.lost = "the life ended with the process, since DURABLE is not declared"
        restarted(backend)
        if not backend.has(pb.CAPABILITY_DURABLE):
            request = life.question(life.life.entries[0])
            life.ns.refuse(request, "NOT_FOUND", "Search after a restart without DURABLE")
            return
        life.lost, life.since = "", f", {since},"
    returned = life.ask_all(backend.life_s)
    for ns, question in questions:
        _expect_own(life, ns, ns.search(question, what=f"a question, {since},").items, "", since)
    _same_answers(life, returned, since)
    as_before(since)
    _replay(life, since)
    as_before(f"{since} and replays of days")
    for each in gone:
        _is_gone(backend, each)
    for ns, facts in life.forgotten:
        for fact in facts:
            ns.expect_hidden(fact, f"it was to be forgotten, {since}")


def _replay(life: Lived, since: str) -> None:
    """Raise BrokenError unless days are known: the first, one in the middle, one without anything, and the last."""
    days = life.life.days
    empty = [frames for frames in days if len(frames) == 2]
    for frames in (days[0], empty[len(empty) // 2], days[len(days) // 2], days[-1]):
        life.ns.replay(frames, f"a replay of day {frames[0].header.day_index}, {since},")


def _same_answers(life: Lived, returned: dict[int, Items], since: str) -> None:
    """Raise BrokenError if a question has other items or scores than before; the message names the kinds affected."""
    known = [n for n in returned if n in life.returned]
    others = [n for n in known if differs(life.returned[n], returned[n])]
    kinds = ", ".join(dict.fromkeys(life.life.entries[n].group for n in others))
    for index in others or known:
        entry = life.life.entries[index]
        many = f", as {len(others)} of {len(known)} ({kinds})," if len(others) > 1 else ","
        what = f"{entry.fact.question!r} of day {entry.day} ({entry.group}){many} {since},"
        _same(what, life.returned[index], returned[index])


def _same(what: str, before: Items, after: Items) -> None:
    if differs(before, after):
        raise BrokenError(f"for {what} other items are returned: {score_change(before, after)}")
    if scores_differ(before, after):
        raise BrokenError(f"for {what} the scores are others: {score_change(before, after)}")


def _is_gone(backend: BackendUnderTest, gone: Neighbour) -> None:
    """Raise BrokenError unless all days of a neighbour that was reset are gone."""
    what = f"Search of a namespace of {len(gone.facts)} days that was reset"
    gone.ns.refuse(gone.ns.question("What?", as_of_day=0), "NOT_FOUND", what)
    fresh, fact = backend.namespace(gone.ns.namespace), backend.fact()
    fresh.add(fact, day=len(gone.facts))
    for old in gone.facts:
        fresh.expect_hidden(old, "its namespace was reset")
    fresh.expect_visible(fact)
