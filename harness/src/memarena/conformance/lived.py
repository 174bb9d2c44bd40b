"""Feeds a life to a backend day by day, asks for its contents, and keeps the items for all checks of chapter LIFE."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import completion, mentions, shows
from memarena.conformance.fixtures import Fact
from memarena.conformance.life import TWICE, Entry, Life, LifeWriter
from memarena.conformance.life_audit import Audit
from memarena.conformance.scripted_models import ReaderScript, default_models
from memarena.conformance.wire import SERVICE, RefusedError

_TIMEOUT_FACTOR = 20
"""Factor on the usual timeout of a call, for Ingest of a day of thousands of turns."""
_EVERYTHING_ITEMS = 200
"""A memory that returns the same number of items, at least this many, to three questions is not asked further."""
_NEIGHBOURS = ("N1", "n10", "n_1", "N", "n.1")  # suffixes as well; that of the life is "n1"
_PATTERNS = ("n%", "n_", "n*", "n?", "n.", "n")
"""Suffixes of namespaces that are patterns of others in some query language, and the common prefix of all ("n")."""
_NEIGHBOUR_DAYS = (2, 9, 10)
"""Day indices whose order as text is not that as numbers."""
_PULSE_S = 0.02
_ASKED_CHARS = 1_000  # of each turn in a question that quotes turns
_WINDOW_TOKENS = 4_000_000  # no prompt of a life is cut to fit

Items = Sequence[pb.MemoryItem]


@dataclass
class Neighbour:
    """Another namespace with a similar name and a few days, whose ids also occur in the life."""

    ns: NamespaceFixture
    facts: list[Fact]
    common: str

    @property
    def question(self) -> str:
        """Return a question for all of its facts, with a word that other namespaces contain too."""
        return " ".join((self.common, *(fact.question for fact in self.facts)))


class Pulse(threading.Thread):
    """Polls the backend's health until it is stopped; other states than SERVING go to ``backend.unwell``."""

    def __init__(self, backend: BackendUnderTest) -> None:
        super().__init__(daemon=True)
        self._backend, self._over = backend, threading.Event()

    def run(self) -> None:
        while not self._over.wait(_PULSE_S):
            try:
                status = self._backend.wire.health(SERVICE, deadline_s=5.0)
            except RefusedError:
                continue  # under load an answer may be late: only another status is a fault
            if status != "SERVING":
                self._backend.unwell.append(status)

    def stop(self) -> None:
        self._over.set()
        self.join(timeout=10)


@dataclass
class Lived:
    """A life in the backend, its neighbour namespaces, and the items that were returned for it."""

    backend: BackendUnderTest
    ns: NamespaceFixture
    life: Life
    audit: Audit
    neighbours: list[Neighbour] = field(default_factory=list)
    to_reset: list[Neighbour] = field(default_factory=list)
    codes: dict[int, set[str]] = field(default_factory=dict)
    """By day index, the codes of the notices in the response to the commit of that day."""
    returned_same_day: dict[int, bool] = field(default_factory=dict)
    """By index of an entry that was asked for right after its day: whether it was returned."""
    returned: dict[int, Items] = field(default_factory=dict)
    """By index of an entry, the items returned for it after all days were ingested."""
    forgotten: list[tuple[NamespaceFixture, list[Fact]]] = field(default_factory=list)
    """Namespaces with the facts that Forget deleted from them."""
    since: str = ""
    """What happened to the life before the question, for messages; empty at first."""
    lost: str = ""
    """Why the life is not in the backend any more; empty if it is."""

    # ---------------------------------------------------------------- feeding

    def feed(self) -> None:
        """Ingest every day, and ask for one of its entries with the next call."""
        self.ns.asked_at = self.life.asked_at
        timeout_s = self.backend.wire.timeout_s * _TIMEOUT_FACTOR
        for number, frames in enumerate(self.life.days):
            day = frames[0].header.day_index
            if (committed := self.ns.commit(frames, timeout_s)).replayed:
                raise BrokenError(
                    f"day {day} of a life, batch {frames[0].header.batch_id!r}, counts as replayed; the one before "
                    f"was {self.life.days[number - 1][0].header.batch_id!r}"
                )
            self.codes[day] = {notice.code for notice in committed.notices}
            entries = [e for e in self.life.entries if e.day == day and e.group != "long" and self.can_ask(e)]
            if entries:
                index = self.life.entries.index(entries[-1])
                self.returned_same_day[index] = self.contains(entries[-1], self.ask(entries[-1]))

    def ingest_neighbours(self) -> None:
        """Ingest the neighbour namespaces, with ids of batches, sessions and people that the life has too."""
        ids, common, person = self.life.session_ids, self.life.common, self.life.people[0].participant_id
        stem = self.ns.namespace.removesuffix("n1")
        most = self.backend.described.limits.max_concurrent_namespaces or len(_NEIGHBOURS) + 1
        for name in (*_NEIGHBOURS[: max(most - 1, 2)], *_PATTERNS):
            ns = self.backend.namespace(f"{stem}{name}")
            self.backend.keep(ns)
            facts = []
            for number, day in enumerate(_NEIGHBOUR_DAYS):
                value = self.backend.words.next()
                facts.append(Fact(f"{common} {value} and more.", f"{value}?", value))
                session = ns.session(facts[-1].statement, day=day)
                session.session_id = ids[number]
                session.participants[0].participant_id = session.turns[0].speaker_id = person
                frames = ns.frames(session, day=day, batch_id=self.life.days[number][0].header.batch_id)
                frames[0].header.owner.participant_id = person
                if ns.commit(fixtures.sealed(frames[:-1])).replayed:
                    raise BrokenError("a batch id that only another namespace has committed is treated as a replay")
            (self.to_reset if name in _PATTERNS else self.neighbours).append(Neighbour(ns, facts, common))

    @cached_property
    def unique_words(self) -> dict[str, set[str]]:
        """By namespace, the words that it alone holds."""
        words = {each.ns.namespace: {fact.value.lower() for fact in each.facts} for each in self.neighbours}
        values, owner = {entry.fact.value.lower() for entry in self.life.entries}, self.life.people[0]
        return {**words, self.ns.namespace: values | words_of(owner.display_name)}

    # ---------------------------------------------------------------- asking

    def questions(self) -> list[tuple[NamespaceFixture, str]]:
        """Return for each namespace a question for much that it holds; for a diagnostic, for the neighbours alone."""
        questions = [(each.ns, each.question) for each in self.neighbours]
        return questions if self.backend.diagnostic else [*questions, (self.ns, self.life.common)]

    def can_ask(self, entry: Entry) -> bool:
        """Whether an entry can be asked for: of a diagnostic only if it has a session, which names its evidence."""
        return not self.backend.diagnostic or entry.session is not None

    def question(self, entry: Entry, text: str = "") -> pb.SearchRequest:
        """Return the question for an entry, with its evidence for a diagnostic."""
        request = self.ns.question(text or entry.fact.question)
        if self.backend.diagnostic and entry.session is not None:
            evidence = pb.PrivilegedEvidence(session_ids=[entry.session.session_id])
            request.privileged_evidence.CopyFrom(evidence)
        return request

    def ask(self, entry: Entry, text: str = "") -> Items:
        """Return the items for an entry's question."""
        request = self.question(entry, text)
        return self.ns.expect_ok(partial(self.backend.search, request), f"a question of a life{self.since}").items

    def returns(self, entry: Entry, items: Items) -> bool:
        """Whether the entry is among the items, or among those for its text with the adjacent turns, which a memory may
        store together. A text of 1,500 words that is returned whole for its first word must be returned for its last,
        unless a notice of its day has a code that no other day has: the memory reports that it indexed the start alone.
        """
        if self.contains(entry, items):
            return True
        if entry.group.endswith("words"):
            others = set[str]().union(*(codes for day, codes in self.codes.items() if day != entry.day))
            cut = self.codes[entry.day] - others
            return bool(cut) or not self.contains(entry, self.ask(entry, f"{entry.fact.value}?"))
        texts = [entry.fact.statement]
        if entry.session is not None and entry.turn is not None:
            index = list(entry.session.turns).index(entry.turn)
            texts = [turn.text for turn in entry.session.turns[max(index - 1, 0) : index + 2]]
        return self.contains(entry, self.ask(entry, "\n".join(text[:_ASKED_CHARS] for text in texts)))

    def contains(self, entry: Entry, items: Items) -> bool:
        """Whether the items contain the entry's statement; of a long text its last word, of `TWICE` each source too."""
        if entry.group.startswith("the end of"):
            return mentions(items, Fact("", "", entry.fact.question.rstrip("?")))
        named = self.backend.has(pb.CAPABILITY_PROVENANCE) and not self.backend.diagnostic
        returned = {session for item in items for session in item.source_session_ids}
        # An id that was never ingested is for life.sources to report.
        if entry.group == TWICE and named and returned <= set(self.life.session_ids):
            twice = [e for e in self.life.entries if e.fact is entry.fact and e.session is not None]
            turns = {turn for item in items for turn in item.source_turn_ids if item.text == entry.fact.statement}
            if turns and not turns.issuperset(e.turn.turn_id for e in twice if e.turn is not None):
                return False
            return returned.issuperset(e.session.session_id for e in twice if e.session is not None)
        return shows(items, entry.fact, verbatim=True)

    def ask_all(self, seconds: float) -> dict[int, Items]:
        """Return the items by index of the entry. Of each group the first entry is asked for in any case, and more
        (up to ``LifeSize.asked``) until ``seconds`` have passed.
        """
        end, returned, groups = time.monotonic() + seconds, dict[int, Items](), Counter[str]()
        items: Items = ()
        for index in self.order():
            entry = self.life.entries[index]
            groups[entry.group] += 1
            if groups[entry.group] > (self.backend.life_size.asked if time.monotonic() < end else 1):
                continue
            sizes = {*map(len, returned.values())}
            if len(returned) == 3 and sizes == {len(items)} and len(items) >= _EVERYTHING_ITEMS:
                returned.update((other, items) for other in self.order() if other not in returned)
                break
            items = returned[index] = self.ask(entry)
        return returned

    def order(self) -> list[int]:
        """Return the indices of entries to ask for, the first of every group before the second of any."""
        seen: dict[str, int] = {}
        ranked = []
        for index, entry in enumerate(self.life.entries):
            if entry.group != "long" and self.can_ask(entry):
                ranked.append((seen.setdefault(entry.group, 0), index))
                seen[entry.group] += 1
        return [index for _, index in sorted(ranked)]

    def answer(self, ns: NamespaceFixture, request: pb.SearchRequest) -> tuple[Items, str]:
        """Return the items that Answer retrieved, and its prompts in lower case. The reply must be the reader's."""
        script = ReaderScript(pieces=[f"{self.backend.words.next()} " for _ in range(8)])
        answer_request = ns.answer_request(request.text)
        answer_request.search.CopyFrom(request)
        received = ns.answer(answer_request, script, default_models(_WINDOW_TOKENS))
        completed = completion(received, "a question of a life")
        if self.backend.has(pb.CAPABILITY_OWN_MODEL):
            return received.events[0].retrieved.items, ""
        if completed.text != (sent := "".join(script.pieces)):
            raise BrokenError(f"the reader sent {sent[:60]!r} to {ns.namespace}, Answer says {completed.text[:60]!r}")
        text = "\n".join(text for call in script.calls for _, text in call.messages())
        return received.events[0].retrieved.items, text.lower()


def lived(backend: BackendUnderTest) -> Lived:
    """Return the life of this run, which the first check that needs it ingests."""
    if isinstance(backend.life, Lived):
        return backend.life
    ns = backend.namespace(f"{backend.new_id()}n1")
    life = LifeWriter(ns, backend.seed, backend.life_size).write()
    provenance = backend.has(pb.CAPABILITY_PROVENANCE)
    backend.life = made = Lived(backend, ns, life, Audit(life, provenance=provenance))
    backend.keep(ns)
    pulse = Pulse(backend)
    pulse.start()
    try:
        made.feed()
        made.ingest_neighbours()
        made.returned = made.ask_all(backend.life_s)
    finally:
        pulse.stop()
    return made


def words_of(text: str) -> set[str]:
    """Return the words of a text in lower case."""
    return set(re.findall(r"\w+", text.lower()))
