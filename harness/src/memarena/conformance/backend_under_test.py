"""The backend under test: what it declared, the namespaces that a check makes in it, what is expected of its calls."""

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
_AGAIN = ("ABORTED", "UNAVAILABLE")
_CUT_SHORT = ("DEADLINE_EXCEEDED", "CANCELLED")
_OF_A_STATE = ("ABORTED", "ALREADY_EXISTS", "FAILED_PRECONDITION", "NOT_FOUND", "UNAVAILABLE")
_NEAR = 32
"""Characters of a batch id that are compared, without regard to case, where one is refused that should be new."""

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """Seconds that a check waits for what may take a moment."""

    retry_s: float = 5.0
    """For what must come to rest: a cancelled call, a namespace that was busy."""
    linger_s: float = 1.0
    """For what must not come: a model call after the return of the call that it belongs to."""
    hold_s: float = 5.0
    """For what must come while something else is held back."""
    deadline_s: float = 0.5
    """Deadlines that are meant to pass."""
    notice_s: float = 0.3
    """For frames to arrive, and for a backend to notice that a call has ended."""


@dataclass
class BackendUnderTest:
    """A backend and what the checks share of it. One check runs at a time."""

    wire: Connection
    models: ScriptedModels
    described: pb.DescribeResponse
    patience: Patience = field(default_factory=Patience)
    restart: Callable[[], None] | None = None
    """Kills the backend with SIGKILL and starts it again. Raises BrokenError if that fails."""
    cell_access: Access | None = None
    """The one access of a backend that cannot pass on a token per call (MOD-8)."""
    digest_is_wrong: bool = False
    """Found by dig.gate: a sound day that is DATA_LOSS is then its fault, and not reported again."""
    missing_rpcs: frozenset[str] = frozenset()
    """RPCs that are not there yet: what needs them is skipped."""
    seed: int = 0
    """What the life of the run and every word are drawn from."""
    life_size: LifeSize = field(default_factory=LifeSize)
    life_s: float = 6.0
    """Seconds for asking for what a life holds, each time."""
    log: Path | None = None
    words: Words = field(default_factory=Words)
    namespaces: list[NamespaceFixture] = field(default_factory=list)
    """Namespaces of the check that is running; reset when it ends."""
    kept: list[NamespaceFixture] = field(default_factory=list)
    """Namespaces that outlive their check; reset when the run ends."""
    linger_until: float = 0.0
    """Until when a late model call of the chapter mod is waited for; 0 before it has made any call."""
    life: object = None
    """Made by the first check that needs it (lived.py)."""
    unwell: list[str] = field(default_factory=list)
    """What health said, other than SERVING, while the life was fed."""
    first_day: tuple[NamespaceFixture, list[pb.IngestRequest], Fact] | None = None
    """Sent by hlt.first-ingest, and expected to be there by hlt.first-batch at the end of the run."""
    batches: list[tuple[str, str]] = field(default_factory=list)
    """Namespace and batch id of each committed day."""
    _run_id: str = field(default_factory=lambda: secrets.token_hex(4))
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # ---------------------------------------------------------------- what was declared

    def has(self, capability: pb.Capability.ValueType) -> bool:
        """Whether Describe declares a capability."""
        return capability in self.described.capabilities

    @property
    def diagnostic(self) -> bool:
        """Whether the backend is a diagnostic, and is therefore sent evidence."""
        return self.described.kind == pb.BACKEND_KIND_DIAGNOSTIC

    @property
    def keeps_words(self) -> bool:
        """Whether words can be returned again as they were sent."""
        return self.described.retention != pb.RETENTION_EXTRACTED

    # ---------------------------------------------------------------- making things

    def new_id(self) -> str:
        """An id that no other call of this run has."""
        return f"c{self._run_id}-{next(self._numbers)}"

    def namespace(self, namespace: str | None = None) -> NamespaceFixture:
        """A namespace that does not exist yet."""
        ns = NamespaceFixture(self, namespace or self.new_id())
        self.namespaces.append(ns)
        self.wire.namespaces.add(ns.namespace)
        return ns

    def keep(self, ns: NamespaceFixture) -> None:
        """Let a namespace live until the run ends."""
        self.namespaces.remove(ns)
        self.kept.append(ns)

    def filled(self) -> tuple[NamespaceFixture, Fact]:
        """A namespace of one day that holds one fact."""
        ns, fact = self.namespace(), self.fact()
        ns.add(fact)
        return ns, fact

    def fact(self) -> Fact:
        """Something that the backend can be expected to keep, and a question that finds it."""
        value = self.words.next()
        if self.keeps_words or not self.described.kept_facts:
            return Fact(f"My neighbour calls her canoe {value}.", f"{value}?", value)
        kept = self.described.kept_facts[0]
        return Fact(kept.statement.replace("{value}", value), kept.question, value)

    def reset_namespaces(self) -> None:
        """Reset what a check has made. A failure is left to the checks that are about Reset."""
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
        """Model access for one call, revoked at the end."""
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
        """Note that the suite itself ended a call: a model call that is under way then comes late through no fault."""
        if error is not None and getattr(error, "code", "CANCELLED") in _CUT_SHORT:
            self.models.abandon(token)

    # ---------------------------------------------------------------- sending

    def ingest(self, frames: Iterable[pb.IngestRequest], deadline_s: float | None = None) -> pb.IngestResponse:
        """Send frames as they are, with model access in the header. Raises RefusedError."""
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
        """Raise SkippedError if an RPC is not there yet; gen.mandatory says so once."""
        if rpc in self.missing_rpcs:
            raise SkippedError(f"{rpc} is UNIMPLEMENTED so far")

    def retried(self, call: Callable[[], T]) -> T:
        """The call's result; ABORTED and UNAVAILABLE are tried again for a while, as a caller does (ERR-3)."""
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
    """One namespace: what was committed to it, and what it must show."""

    backend: BackendUnderTest
    namespace: str
    last_day: int = -1
    sessions: list[pb.Session] = field(default_factory=list)
    """Committed sessions, oldest first."""
    asked_at: str = ""
    """The moment of its questions; empty: the day after the last."""

    # ---------------------------------------------------------------- days

    def frames(
        self,
        *sessions: pb.Session,
        events: Iterable[pb.Event] = (),
        day: int | None = None,
        batch_id: str | None = None,
    ) -> list[pb.IngestRequest]:
        """A whole day, by default the next one, with its trailer."""
        index = self.last_day + 1 if day is None else day
        head = fixtures.header(self.namespace, index, batch_id or self.backend.new_id())
        return fixtures.sealed(fixtures.frames(head, sessions, events))

    def session(self, *texts: str, day: int | None = None) -> pb.Session:
        """A session of the next day, in which the owner says these texts."""
        return fixtures.session(self.backend.new_id(), texts, day=self.last_day + 1 if day is None else day)

    def commit(self, frames: Sequence[pb.IngestRequest], deadline_s: float | None = None) -> pb.IngestResponse:
        """Send a sound day, which must be accepted."""
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
        """Send a committed day again, which must be OK, reported as a replay, and without any effect."""
        response = self.expect_ok(lambda: self.backend.ingest(frames), what)
        if not response.replayed:
            raise BrokenError(f"{what} is not reported as one")
        if (last := response.visible_through_day) != self.last_day:
            raise BrokenError(f"{what} says visible_through_day {last}; the last day is {self.last_day}")

    def _in_context(self, error: RefusedError) -> str:
        """The error, and how an earlier call on the namespace had ended, of which it may be an effect."""
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
        near = day.batch_id.casefold()[:_NEAR]
        others = [f"{batch!r} in {name!r}" for name, batch in self.backend.batches if batch.casefold()[:_NEAR] == near]
        known = ", ".join(others) or "no batch id that resembles it"
        return f"the batch id {day.batch_id!r} is refused as known in {self.namespace!r}; committed are {known}"

    def note(self, frames: Iterable[pb.IngestRequest]) -> None:
        """Remember a day as committed."""
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
        """A sound question of the owner, as of the last committed day by default."""
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
        """A sound question, which must be answered."""
        request = self.question(text, as_of_day)
        return self.expect_ok(lambda: self.backend.search(request), what)

    def items(
        self, fact: Fact, as_of_day: int | None = None, *, verbatim: bool | None = None
    ) -> Sequence[pb.MemoryItem]:
        """What is returned for a fact's question, which must be something that holds it; by default in its own words
        where words are kept.
        """
        in_words = self.backend.keeps_words if verbatim is None else verbatim
        deadline = time.monotonic() + self.backend.patience.retry_s
        while True:
            response = self.search(fact.question, as_of_day)
            if shows(response.items, fact, verbatim=in_words):
                return response.items
            # Whether it was there at once is for one check alone (ing.ready); what is there in other words stays so.
            if (altered := mentions(response.items, fact)) or time.monotonic() > deadline:
                how = "is returned in other words" if altered else "is not returned"
                raise BrokenError(f"{quoted(fact)} was committed, but {how} ({seen(response.items)})")
            time.sleep(_POLL_S)

    def stable_items(self, text: str) -> Sequence[pb.MemoryItem]:
        """What a question finds, once it finds something. Raises SkippedError if the same Search differs by itself."""
        deadline = time.monotonic() + self.backend.patience.retry_s
        while not (items := self.search(text).items):
            if time.monotonic() > deadline:
                raise BrokenError("nothing is returned")
            time.sleep(_POLL_S)
        if differs(items, again := self.search(text).items) or scores_differ(items, again):
            raise SkippedError("the same Search returns other items by itself: that is reported by src.repeatable")
        return items

    def expect_visible(self, *facts: Fact, as_of_day: int | None = None) -> None:
        """Each fact is returned."""
        for fact in facts:
            self.items(fact, as_of_day)

    def expect_hidden(self, fact: Fact, why: str, as_of_day: int | None = None) -> None:
        """A fact is not returned, whether the question names it or not. Call :meth:`expect_visible` too."""
        response = self.search(fact.question, as_of_day)
        if mentions(response.items, fact):
            raise BrokenError(f"{quoted(fact)} is returned, but {why}")

    # ---------------------------------------------------------------- answers

    def answer_request(self, text: str, max_tokens: int = 64) -> pb.AnswerRequest:
        """A sound request for an answer by the suite's reader, model access left out."""
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
        """The call must work, after a wait if the backend asks for one."""
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
        """A day, a question or a request for an answer must fail with this code and name the field, if one is named."""

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
        """What was there is, what was refused is not, and is once its day is sent as it should be."""
        self.expect_visible(kept)
        self.expect_hidden(refused, why)
        if self.commit(sound).replayed:
            raise BrokenError(f"a day that was never committed counts as replayed: {why}")
        self.expect_visible(refused)

    def skip_for_the_digest(self, error: RefusedError) -> None:
        """Raise SkippedError for a sound day that is refused because the backend computes another digest."""
        if error.code == "DATA_LOSS" and self.backend.digest_is_wrong:
            raise SkippedError("a sound day is DATA_LOSS: the mistake is reported by dig.gate") from error
