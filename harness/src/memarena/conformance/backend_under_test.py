"""Gives checks the backend under test: its declarations, new namespaces, calls, and expectations of their results."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.drawn_words import Words
from memarena.conformance.errors import BrokenError, SkippedError
from memarena.conformance.expectations import (
    differs,
    expect_refused,
    mentions,
    quoted,
    scores_differ,
    seen,
    shows,
    with_access,
)
from memarena.conformance.fixtures import Fact
from memarena.conformance.life_size import LifeSize
from memarena.conformance.scripted_models import READER, REFUSALS, Access, ReaderScript, ScriptedModels
from memarena.conformance.wire import Connection, Received, RefusedError

_POLL_S = 0.02
_AGAIN = ("ABORTED", "UNAVAILABLE")  # codes after which a caller may send a call again
_CUT_SHORT = ("DEADLINE_EXCEEDED", "CANCELLED")  # codes of a call that the suite ended
_OF_A_STATE = ("ABORTED", "ALREADY_EXISTS", "FAILED_PRECONDITION", "INTERNAL", "NOT_FOUND", "UNAVAILABLE", "UNKNOWN")

T = TypeVar("T")


def _stem(batch_id: str) -> str:
    """Return what similar batch ids share: lower case, no leading zeros, the first 32 characters."""
    return batch_id.casefold().lstrip("0")[:32]


@dataclass(frozen=True)
class Patience:
    """Seconds that a check waits, by purpose."""

    retry_s: float = 5.0
    """Until a cancelled call has ended, or a busy namespace is free."""
    linger_s: float = 1.0
    """For an event that must not come: a model call after the return of its call."""
    hold_s: float = 5.0
    """For an event that must come while another is withheld."""
    deadline_s: float = 0.5
    """Deadline of a call that is meant to exceed it."""
    notice_s: float = 0.3
    """Until frames have arrived, or the backend has noticed that a call ended."""


@dataclass
class BackendUnderTest:
    """A backend, with the state that checks share. One check runs at a time."""

    wire: Connection
    models: ScriptedModels
    described: pb.DescribeResponse
    patience: Patience = field(default_factory=Patience)
    restart: Callable[[], None] | None = None
    """Kills the backend with SIGKILL and starts it again. Raises BrokenError if that fails."""
    cell_access: Access | None = None
    """The access for all calls of a backend that cannot use a token per call (MOD-8); None for others."""
    digest_is_wrong: bool = False
    """Whether dig.gate failed: DATA_LOSS for a sound day is then due to the digest, and not reported again."""
    missing_rpcs: frozenset[str] = frozenset()
    """RPCs that the backend does not implement yet: checks that need them are skipped."""
    seed: int = 0
    """Seed of the run's life and of every word."""
    life_size: LifeSize = field(default_factory=LifeSize)
    life_s: float = 6.0
    """Seconds for asking for the contents of the life, each time."""
    log: Path | None = None
    words: Words = field(default_factory=Words)
    namespaces: list[NamespaceFixture] = field(default_factory=list)
    """Namespaces of the check that is running; reset when it ends."""
    kept: list[NamespaceFixture] = field(default_factory=list)
    """Namespaces that outlive their check; reset when the run ends."""
    linger_until: float = 0.0
    """Monotonic time until which chapter mod waits for late model calls; 0 before it has made any call."""
    life: object = None
    """The life (``Lived`` of lived.py), made by the first check that needs it; None before."""
    unwell: list[str] = field(default_factory=list)
    """Health states other than SERVING while the life was ingested."""
    first_day: tuple[NamespaceFixture, list[pb.IngestRequest], Fact] | None = None
    """The day that hlt.first-ingest sent, which hlt.first-batch expects at the end of the run."""
    batches: list[tuple[str, str]] = field(default_factory=list)
    """Namespace and batch id of each committed day."""
    _run_id: str = field(default_factory=lambda: secrets.token_hex(4))
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # ---------------------------------------------------------------- declarations

    def has(self, capability: pb.Capability.ValueType) -> bool:
        """Whether Describe declares a capability."""
        return capability in self.described.capabilities

    @property
    def diagnostic(self) -> bool:
        """Whether the backend is a diagnostic, and is therefore sent evidence."""
        return self.described.kind == pb.BACKEND_KIND_DIAGNOSTIC

    @property
    def keeps_words(self) -> bool:
        """Whether texts are returned in the words in which they were sent."""
        return self.described.retention != pb.RETENTION_EXTRACTED

    # ---------------------------------------------------------------- making things

    def new_id(self) -> str:
        """Return an id that is unique in this run."""
        return f"c{self._run_id}-{next(self._numbers)}"

    def namespace(self, namespace: str | None = None) -> NamespaceFixture:
        """Return a namespace that does not exist yet."""
        ns = NamespaceFixture(self, namespace or self.new_id())
        self.namespaces.append(ns)
        self.wire.namespaces.add(ns.namespace)
        return ns

    def keep(self, ns: NamespaceFixture) -> None:
        """Keep a namespace until the run ends; others are reset after their check."""
        self.namespaces.remove(ns)
        self.kept.append(ns)

    def filled(self) -> tuple[NamespaceFixture, Fact]:
        """Return a namespace with a committed day that has one fact, and the fact."""
        ns, fact = self.namespace(), self.fact()
        ns.add(fact)
        return ns, fact

    def fact(self) -> Fact:
        """Return a fact that the backend must keep by its declaration."""
        value = self.words.next()
        if self.keeps_words or not self.described.kept_facts:
            return Fact(f"My neighbour calls her canoe {value}.", f"{value}?", value)
        kept = self.described.kept_facts[0]
        return Fact(kept.statement.replace("{value}", value), kept.question, value)

    def reset_namespaces(self) -> None:
        """Reset the namespaces of the check. Failures are ignored, since other checks test Reset."""
        for ns in self.namespaces:
            try:
                self.wire.reset(ns.namespace)
            except (RefusedError, SkippedError):
                continue
        self.namespaces.clear()

    @contextmanager
    def access(
        self, label: str, script: ReaderScript | None = None, models: Sequence[pb.Model] | None = None
    ) -> Iterator[pb.ModelAccess]:
        """Yield model access for one call, which is revoked at the end."""
        if (cell := self.cell_access) is not None:
            cell.script = script or ReaderScript()
            base_url, token = cell.message.base_url, cell.message.token
            yield cell.message if models is None else pb.ModelAccess(base_url=base_url, token=token, models=models)
            return
        with self.models.grant(label, script, models) as message:
            try:
                yield message
            except Exception as error:
                self.abandon(message.token, error)
                raise

    def abandon(self, token: str, error: Exception | None) -> None:
        """Note that the suite itself ended a call, so that a late model call of it is no fault."""
        if error is not None and getattr(error, "code", "CANCELLED") in _CUT_SHORT:
            self.models.abandon(token)

    # ---------------------------------------------------------------- sending

    def ingest(self, frames: Iterable[pb.IngestRequest], deadline_s: float | None = None) -> pb.IngestResponse:
        """Send frames unchanged but for model access in the header. Raises RefusedError."""
        self.need("Ingest")
        with self.access("Ingest") as access:
            return self.wire.ingest(with_access(frames, access), deadline_s)

    def search(self, request: pb.SearchRequest, deadline_s: float | None = None) -> pb.SearchResponse:
        """Send a question, with model access. Raises RefusedError."""
        self.need("Search")
        with self.access("Search") as access:
            sent = pb.SearchRequest()
            sent.CopyFrom(request)
            if not sent.HasField("model_access"):
                sent.model_access.CopyFrom(access)
            return self.wire.search(sent, deadline_s)

    def need(self, rpc: str) -> None:
        """Raise SkippedError if the backend does not implement an RPC yet, which gen.mandatory reports."""
        if rpc in self.missing_rpcs:
            raise SkippedError(f"{rpc} is UNIMPLEMENTED so far")

    def retried(self, call: Callable[[], T]) -> T:
        """Return the call's result; after ABORTED or UNAVAILABLE it is retried for a while, as callers do (ERR-3)."""
        deadline = time.monotonic() + self.patience.retry_s
        while True:
            try:
                return call()
            except RefusedError as error:
                if error.code not in _AGAIN or time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)


@dataclass
class NamespaceFixture:
    """One namespace: sends days and questions to it, and knows the days committed to it."""

    backend: BackendUnderTest
    namespace: str
    last_day: int = -1
    sessions: list[pb.Session] = field(default_factory=list)
    """Committed sessions, oldest first."""
    asked_at: str = ""
    """Time of its questions, RFC 3339; empty: the day after the last."""

    # ---------------------------------------------------------------- days

    def frames(
        self,
        *sessions: pb.Session,
        events: Iterable[pb.Event] = (),
        day: int | None = None,
        batch_id: str | None = None,
    ) -> list[pb.IngestRequest]:
        """Return the frames of a day, by default the next one, with its trailer."""
        index = self.last_day + 1 if day is None else day
        head = fixtures.header(self.namespace, index, batch_id or self.backend.new_id())
        return fixtures.sealed(fixtures.frames(head, sessions, events))

    def session(self, *texts: str, day: int | None = None) -> pb.Session:
        """Return a session of the next day, or of ``day``, in which the owner says these texts."""
        return fixtures.session(self.backend.new_id(), texts, day=self.last_day + 1 if day is None else day)

    def commit(self, frames: Sequence[pb.IngestRequest], deadline_s: float | None = None) -> pb.IngestResponse:
        """Send a sound day. Raises BrokenError if it is refused."""
        try:
            response = self.backend.retried(lambda: self.backend.ingest(frames, deadline_s))
        except RefusedError as error:
            self.skip_for_the_digest(error)
            raise BrokenError(
                f"{self._refused_wrongly(frames[0].header, error.code)}: {self._in_context(error)}"
            ) from error
        self.note(frames)
        if response.visible_through_day != self.last_day:
            raise BrokenError(f"Ingest of day {self.last_day} says visible_through_day {response.visible_through_day}")
        return response

    def replay(self, frames: Sequence[pb.IngestRequest], what: str = "a replay of a day") -> None:
        """Send a committed day again. Raises BrokenError unless it is OK, reported as a replay, and changes no day."""
        response = self.expect_ok(lambda: self.backend.ingest(frames), what)
        if not response.replayed:
            raise BrokenError(f"{what} is not reported as one")
        if (last := response.visible_through_day) != self.last_day:
            raise BrokenError(f"{what} says visible_through_day {last}; the last day is {self.last_day}")

    def _in_context(self, error: RefusedError) -> str:
        """Return the error, with the end of an earlier failed call on the namespace that may have caused it."""
        calls = self.backend.wire.ended.get(self.namespace, ()) if error.code in _OF_A_STATE else ()
        earlier = [each for each in calls if each != f"{error.rpc} with {error.code}"]
        return f"{error}" + (f"; before, a call on the namespace had ended: {earlier[-1]}" if earlier else "")

    def _refused_wrongly(self, day: pb.DayHeader, code: str) -> str:
        if code == "FAILED_PRECONDITION":
            last = f"day {self.last_day} is the last committed one" if self.last_day >= 0 else "no day is committed"
            gap = " and gaps are allowed" if day.day_index > self.last_day + 1 else ""
            return f"day {day.day_index} of {self.namespace!r} was refused, although {last}{gap}"
        if code != "ALREADY_EXISTS":
            return "a sound day was refused"
        batches = self.backend.batches
        others = [f"{batch!r} in {name!r}" for name, batch in batches if _stem(batch) == _stem(day.batch_id)]
        known = ", ".join(others) or "no batch id that resembles it"
        return f"the batch id {day.batch_id!r} is refused as known in {self.namespace!r}; committed are {known}"

    def note(self, frames: Iterable[pb.IngestRequest]) -> None:
        """Record a day as committed."""
        for frame in frames:
            if frame.HasField("header"):
                self.backend.batches.append((self.namespace, frame.header.batch_id))
                self.last_day = max(self.last_day, frame.header.day_index)
            elif frame.HasField("session") and not frame.session.continuation:
                self.sessions.append(frame.session)

    def add(self, *facts: Fact, day: int | None = None) -> pb.IngestResponse:
        """Commit a day with a session for each fact."""
        index = self.last_day + 1 if day is None else day
        sessions = [
            fixtures.session(self.backend.new_id(), [fact.statement], day=index, minute=5 * number)
            for number, fact in enumerate(facts)
        ]
        return self.commit(self.frames(*sessions, day=index))

    # ---------------------------------------------------------------- questions

    def question(self, text: str, as_of_day: int | None = None) -> pb.SearchRequest:
        """Return a sound question of the owner, by default as of the last committed day."""
        as_of = max(self.last_day, 0) if as_of_day is None else as_of_day
        request = pb.SearchRequest(
            namespace=self.namespace,
            query_id=self.backend.new_id(),
            text=text,
            asked_at=self.asked_at or fixtures.moment(max(as_of, self.last_day) + 1),
            as_of_day=as_of,
            requester=pb.Requester(kind=pb.REQUESTER_KIND_OWNER),
        )
        if self.backend.diagnostic:
            # Newest first, so that a bound on items or tokens leaves the session that was just ingested.
            newest = [session.session_id for session in reversed(self.sessions)]
            request.privileged_evidence.CopyFrom(pb.PrivilegedEvidence(session_ids=newest))
        return request

    def search(self, text: str, as_of_day: int | None = None, what: str = "a sound question") -> pb.SearchResponse:
        """Send a sound question. Raises BrokenError if it is refused."""
        request = self.question(text, as_of_day)
        return self.expect_ok(lambda: self.backend.search(request), what)

    def items(
        self, fact: Fact, as_of_day: int | None = None, *, verbatim: bool | None = None
    ) -> Sequence[pb.MemoryItem]:
        """Return the items for a fact. Raises BrokenError if none has its statement (``verbatim``) or, else, value."""
        in_words = self.backend.keeps_words if verbatim is None else verbatim
        deadline = time.monotonic() + self.backend.patience.retry_s
        while True:
            response = self.search(fact.question, as_of_day)
            if shows(response.items, fact, verbatim=in_words):
                return response.items
            # Retried, since only ing.ready tests that a fact is returned at once; other words will not change.
            if (altered := mentions(response.items, fact)) or time.monotonic() > deadline:
                how = "is returned in other words" if altered else "is not returned"
                raise BrokenError(f"{quoted(fact)} was committed, but {how} ({seen(response.items)})")
            time.sleep(_POLL_S)

    def stable_items(self, text: str) -> Sequence[pb.MemoryItem]:
        """Return a question's items, once there are any. Raises SkippedError if a second Search returns others."""
        deadline = time.monotonic() + self.backend.patience.retry_s
        while not (items := self.search(text).items):
            if time.monotonic() > deadline:
                raise BrokenError("nothing is returned")
            time.sleep(_POLL_S)
        if differs(items, again := self.search(text).items) or scores_differ(items, again):
            raise SkippedError("the same Search returns other items by itself: that is reported by src.repeatable")
        return items

    def expect_visible(self, *facts: Fact, as_of_day: int | None = None) -> None:
        """Raise BrokenError unless each fact is returned."""
        for fact in facts:
            self.items(fact, as_of_day)

    def expect_hidden(self, fact: Fact, why: str, as_of_day: int | None = None) -> None:
        """Raise BrokenError if a fact is returned. Call :meth:`expect_visible` too, as a control."""
        response = self.search(fact.question, as_of_day)
        if mentions(response.items, fact):
            raise BrokenError(f"{quoted(fact)} is returned, but {why}")

    # ---------------------------------------------------------------- answers

    def answer_request(self, text: str, max_tokens: int = 64) -> pb.AnswerRequest:
        """Return a sound request for an answer by the suite's reader, without model access."""
        reading = pb.Reading(model=READER, max_tokens=max_tokens)
        return pb.AnswerRequest(search=self.question(text), reading=reading)

    def answer(
        self,
        request: pb.AnswerRequest,
        script: ReaderScript | None = None,
        models: Sequence[pb.Model] | None = None,
        on_event: Callable[[pb.AnswerEvent], None] = lambda _: None,
        deadline_s: float | None = None,
    ) -> Received:
        """Send a request with its own model access."""
        with self.backend.access("Answer", script, models) as access:
            sent = pb.AnswerRequest()
            sent.CopyFrom(request)
            if sent.HasField("search") and not sent.search.HasField("model_access"):
                sent.search.model_access.CopyFrom(access)
            with self.backend.models.recording() as calls:
                received = self.backend.wire.answer(sent, deadline_s, on_event)
            if received.refused and (wrong := [call for call in calls if call.phase in REFUSALS]):
                why = f"the gateway refused {wrong[0].path} ({REFUSALS[wrong[0].phase][1]})"
                received.refused.args = (f"{why}, and then {received.refused}",)
            self.backend.abandon(access.token, received.refused)
            return received

    # ---------------------------------------------------------------- expectations

    def expect_ok(self, call: Callable[[], T], what: str) -> T:
        """Return the result of a call, retried if the backend asks for it. Raises BrokenError if it is refused."""
        try:
            return self.backend.retried(call)
        except RefusedError as error:
            self.skip_for_the_digest(error)
            raise BrokenError(f"{what} was refused: {self._in_context(error)}") from error

    def refuse(
        self,
        sent: Sequence[pb.IngestRequest] | pb.SearchRequest | pb.AnswerRequest,
        code: str,
        what: str,
        *,
        field: str | None = None,
        script: ReaderScript | None = None,
        models: Sequence[pb.Model] | None = None,
    ) -> RefusedError:
        """Send a request that must fail with this code (and name ``field``). Raises BrokenError if it does not."""

        def send() -> None:
            if isinstance(sent, pb.SearchRequest):
                self.backend.search(sent)
            elif not isinstance(sent, pb.AnswerRequest):
                self.backend.ingest(sent)
            elif (refused := self.answer(sent, script, models).refused) is not None:
                raise refused

        try:
            return expect_refused(send, code, what, field=field)
        except BrokenError as error:
            if isinstance(got := error.__cause__, RefusedError):
                raise BrokenError(f"{error}{self._in_context(got).removeprefix(str(got))}") from got
            raise

    def expect_unharmed(self, kept: Fact, refused: Fact, why: str, sound: Sequence[pb.IngestRequest]) -> None:
        """Expect ``kept`` to be returned, and ``refused`` only after its day is sent correctly (``sound``)."""
        self.expect_visible(kept)
        self.expect_hidden(refused, why)
        if self.commit(sound).replayed:
            raise BrokenError(f"a day that was never committed counts as replayed: {why}")
        self.expect_visible(refused)

    def skip_for_the_digest(self, error: RefusedError) -> None:
        """Raise SkippedError for a sound day that is refused because the backend computes another digest."""
        if error.code == "DATA_LOSS" and self.backend.digest_is_wrong:
            raise SkippedError("a sound day is DATA_LOSS: the mistake is reported by dig.gate") from error
