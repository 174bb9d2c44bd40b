"""A life as a backend has it: fed day by day, asked, and what was returned and prompted for each question."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import completion, mentions, shows
from memarena.conformance.fixtures import Fact
from memarena.conformance.life import Entry, Life, LifeWriter
from memarena.conformance.life_audit import Audit
from memarena.conformance.scripted_models import ReaderScript, default_models
from memarena.conformance.wire import SERVICE, RefusedError

_PATIENCE = 20
"""Times the usual wait for one call: what a day of thousands of turns may take."""
_WHOLE = 200
"""Items that a memory returns for any question, if it returns so many of the same to three."""
_NEIGHBOURS = ("N1", "n10", "n_1", "N", "n.1")
_PATTERNS = ("n%", "n_", "n*", "n?", "n.", "n")
"""Those whose names are a pattern of others somewhere, and the beginning of all others."""
_NEIGHBOUR_DAYS = (2, 9, 10)
"""As text they have another order than as numbers."""
_PULSE_S = 0.02
_ASKED_CHARS = 1_000
_WINDOW_TOKENS = 4_000_000

Items = Sequence[pb.MemoryItem]


@dataclass
class Neighbour:
    """Another namespace, nearly of the same name: a few days, with ids that the life has, too."""

    ns: NamespaceFixture
    facts: list[Fact]
    common: str

    @property
    def question(self) -> str:
        """Asks for everything that it holds, and by a word that others hold, too."""
        return " ".join((self.common, *(fact.question for fact in self.facts)))


class Pulse(threading.Thread):
    """Asks for the health again and again, until it is stopped."""

    def __init__(self, backend: BackendUnderTest) -> None:
        super().__init__(daemon=True)
        self._backend, self._over = backend, threading.Event()

    def run(self) -> None:
        while not self._over.wait(_PULSE_S):
            try:
                status = self._backend.wire.health(SERVICE, deadline_s=5.0)
            except RefusedError:
                continue  # under load an answer may be late; that it is another one is what is looked for
            if status != "SERVING":
                self._backend.unwell.append(status)

    def stop(self) -> None:
        self._over.set()
        self.join(timeout=10)


@dataclass
class Lived:
    """One life in the backend, its neighbours, and what was returned for it."""

    backend: BackendUnderTest
    ns: NamespaceFixture
    life: Life
    audit: Audit
    neighbours: list[Neighbour] = field(default_factory=list)
    to_reset: list[Neighbour] = field(default_factory=list)
    at_once: dict[int, bool] = field(default_factory=dict)
    """For what was asked by the call after its day, by its index among the entries: whether it was returned."""
    returned: dict[int, Items] = field(default_factory=dict)
    """What was returned for it at the end of the feeding."""
    forgotten: list[tuple[NamespaceFixture, list[Fact]]] = field(default_factory=list)
    """What Forget deleted from namespaces that live on."""
    since: str = ""
    """What happened to it before the question."""
    lost: str = ""
    """Why it is not there any more."""

    # ---------------------------------------------------------------- feeding

    def feed(self) -> None:
        """Send every day, and ask for something of it by the next call."""
        self.ns.asked_at = self.life.asked_at
        patience_s = self.backend.wire.timeout_s * _PATIENCE
        for number, frames in enumerate(self.life.days):
            day = frames[0].header.day_index
            if self.ns.commit(frames, patience_s).replayed:
                raise BrokenError(
                    f"day {day} of a life, batch {frames[0].header.batch_id!r}, counts as replayed; the one before "
                    f"was {self.life.days[number - 1][0].header.batch_id!r}"
                )
            entries = [
                each for each in self.life.entries if each.day == day and each.group != "long" and self.can_ask(each)
            ]
            if entries:
                # Of a day of events and sessions, the last that came.
                index = self.life.entries.index(entries[-1])
                self.at_once[index] = self.hit(entries[-1], self.ask(entries[-1]))

    def near(self) -> None:
        """Fill the neighbours, with ids of batches, sessions and people that the life has."""
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

    # ---------------------------------------------------------------- asking

    def can_ask(self, entry: Entry) -> bool:
        """What a diagnostic is to find is named by its session."""
        return not self.backend.diagnostic or entry.session is not None

    def question(self, entry: Entry, text: str = "") -> pb.SearchRequest:
        """The question for something that was ingested, with the evidence of it for a diagnostic."""
        request = self.ns.question(text or entry.fact.question)
        if self.backend.diagnostic and entry.session is not None:
            evidence = pb.PrivilegedEvidence(session_ids=[entry.session.session_id])
            request.privileged_evidence.CopyFrom(evidence)
        return request

    def ask(self, entry: Entry, text: str = "") -> Items:
        """What is returned for it."""
        request = self.question(entry, text)
        return self.ns.expect_ok(partial(self.backend.search, request), f"a question of a life{self.since}").items

    def ask_again(self, entry: Entry) -> Items:
        """What is returned for its whole text and that of the turns about it, which a memory may keep as one."""
        texts = [entry.fact.statement]
        if entry.session is not None and entry.turn is not None:
            at = list(entry.session.turns).index(entry.turn)
            texts = [turn.text for turn in entry.session.turns[max(at - 1, 0) : at + 2]]
        return self.ask(entry, "\n".join(text[:_ASKED_CHARS] for text in texts))

    def hit(self, entry: Entry, items: Items) -> bool:
        """Whether it is among the items, in its own words; of a text at the limit, its end."""
        if entry.group.startswith("the end of"):
            return mentions(items, Fact("", "", entry.fact.question.rstrip("?")))
        named = self.backend.has(pb.CAPABILITY_PROVENANCE) and not self.backend.diagnostic
        returned = {session for item in items for session in item.source_session_ids}
        # An id that was never ingested is for life.sources to report.
        if entry.group == "a turn that comes twice" and named and returned <= set(self.life.session_ids):
            twice = [e for e in self.life.entries if e.fact is entry.fact and e.session is not None]
            turns = {turn for item in items for turn in item.source_turn_ids if item.text == entry.fact.statement}
            if turns and not turns.issuperset(e.turn.turn_id for e in twice if e.turn is not None):
                return False
            return returned.issuperset(e.session.session_id for e in twice if e.session is not None)
        return shows(items, entry.fact, verbatim=True)

    def ask_all(self, seconds: float) -> dict[int, Items]:
        """What is returned for each entry, a group after the other: of each group the first entry in any case, and
        more until ``seconds`` have passed.
        """
        end, returned, groups = time.monotonic() + seconds, dict[int, Items](), Counter[str]()
        whole: Items = ()
        for index in self.order():
            entry = self.life.entries[index]
            groups[entry.group] += 1
            if groups[entry.group] > (self.backend.life_size.asked if time.monotonic() < end else 1):
                continue
            if (
                len(returned) == 3
                and len(whole) >= _WHOLE
                and all(len(items) == len(whole) for items in returned.values())
            ):
                returned.update((each, whole) for each in self.order() if each not in returned)
                break
            whole = returned[index] = self.ask(entry)
        return returned

    def order(self) -> list[int]:
        """What can be asked, the first of every group before the second of any."""
        seen: dict[str, int] = {}
        ranked = []
        for index, entry in enumerate(self.life.entries):
            if entry.group != "long" and self.can_ask(entry):
                ranked.append((seen.setdefault(entry.group, 0), index))
                seen[entry.group] += 1
        return [index for _, index in sorted(ranked)]

    def answer(self, ns: NamespaceFixture, request: pb.SearchRequest) -> tuple[Items, str]:
        """What Answer retrieved, and the prompts of the call in lower case. The reply must be its own."""
        script = ReaderScript(pieces=[f"{self.backend.words.next()} " for _ in range(8)])
        asked = ns.answer_request(request.text)
        asked.search.CopyFrom(request)
        received = ns.answer(asked, script, default_models(_WINDOW_TOKENS))
        completed = completion(received, "a question of a life")
        if self.backend.has(pb.CAPABILITY_OWN_MODEL):
            return received.events[0].retrieved.items, ""
        if completed.text != (reported := "".join(script.pieces)):
            raise BrokenError(
                f"the reader sent {reported[:60]!r} to {ns.namespace}, Answer says {completed.text[:60]!r}"
            )
        text = "\n".join(text for call in script.calls for _, text in call.messages())
        return received.events[0].retrieved.items, text.lower()


def lived(backend: BackendUnderTest) -> Lived:
    """The life of this run, fed by the first check that needs it."""
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
        made.near()
        made.returned = made.ask_all(backend.life_s)
    finally:
        pulse.stop()
    return made


def words_of(text: str) -> set[str]:
    """The words of a text in lower case."""
    return set(re.findall(r"\w+", text.lower()))
