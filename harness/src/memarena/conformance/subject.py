"""The backend under test: what it declared, the lives that a check makes in it, and what is expected of its calls."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import days
from memarena.conformance.days import Fact, Words
from memarena.conformance.errors import BrokenError
from memarena.conformance.models import READER, Access, ReaderScript, ScriptedModels
from memarena.conformance.wire import Connection, Received, RefusedError

_POLL_S = 0.02
_AGAIN = ("ABORTED", "UNAVAILABLE")

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """Seconds that a check waits for what may take a moment."""

    settle_s: float = 5.0
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
class Subject:
    """A backend and what the checks share of it. One check runs at a time."""

    wire: Connection
    models: ScriptedModels
    described: pb.DescribeResponse
    patience: Patience = field(default_factory=Patience)
    restart: Callable[[], None] | None = None
    """Kills the backend with SIGKILL and starts it again. Raises BrokenError if that fails."""
    cell_access: Access | None = None
    """The one access of a backend that cannot pass on a token per call (MOD-8)."""
    words: Words = field(default_factory=Words)
    lives: list[Life] = field(default_factory=list)
    """Lives of the check that is running; reset when it ends."""
    _run_id: str = field(default_factory=lambda: secrets.token_hex(4))
    _count: int = 0

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
        """Whether words can be found again as they were sent."""
        return self.described.retention != pb.RETENTION_EXTRACTED

    # ---------------------------------------------------------------- making things

    def new_id(self) -> str:
        """An id that no other call of this run has."""
        self._count += 1
        return f"c{self._run_id}-{self._count}"

    def life(self, namespace: str | None = None) -> Life:
        """A namespace that does not exist yet."""
        life = Life(self, namespace or self.new_id())
        self.lives.append(life)
        return life

    def fact(self) -> Fact:
        """Something that the backend can be expected to keep, and a question that finds it."""
        value = self.words.next()
        if self.keeps_words or not self.described.kept_facts:
            return Fact(f"My neighbour calls her canoe {value}.", f"{value}?", value)
        kept = self.described.kept_facts[0]
        return Fact(kept.statement.replace("{value}", value), kept.question, value)

    def forget_lives(self) -> None:
        """Reset what a check has made. A failure is left to the checks that are about Reset."""
        for life in self.lives:
            try:
                self.wire.reset(life.namespace)
            except RefusedError:
                continue
        self.lives.clear()

    @contextmanager
    def access(
        self, label: str, script: ReaderScript | None = None, models: Sequence[pb.Model] | None = None
    ) -> Iterator[pb.ModelAccess]:
        """Model access for one call, revoked at the end."""
        if self.cell_access is not None:
            self.models.rehearse(self.cell_access.token, script or ReaderScript())
            yield self.cell_access.message if models is None else _offering(self.cell_access.message, models)
            return
        with self.models.grant(label, script, models) as message:
            yield message

    # ---------------------------------------------------------------- sending

    def ingest(self, frames: Iterable[pb.IngestRequest], deadline_s: float | None = None) -> pb.IngestResponse:
        """Send frames as they are, with model access in the header. Raises RefusedError."""
        with self.access("Ingest") as access:
            return self.wire.ingest(with_access(frames, access), deadline_s)

    def search(self, request: pb.SearchRequest, deadline_s: float | None = None) -> pb.SearchResponse:
        """Send a question, with model access. Raises RefusedError."""
        with self.access("Search") as access:
            sent = pb.SearchRequest()
            sent.CopyFrom(request)
            if not sent.HasField("model_access"):
                sent.model_access.CopyFrom(access)
            return self.wire.search(sent, deadline_s)

    def settled(self, call: Callable[[], T]) -> T:
        """The call's result; ABORTED and UNAVAILABLE are tried again for a while, as a caller does (ERR-3)."""
        deadline = time.monotonic() + self.patience.settle_s
        while True:
            try:
                return call()
            except RefusedError as error:
                if error.code not in _AGAIN or time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)


@dataclass
class Life:
    """One namespace: what was committed to it, and what it must show."""

    subject: Subject
    namespace: str
    last_day: int = -1
    sessions: list[pb.Session] = field(default_factory=list)
    """Committed sessions, oldest first."""

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
        head = days.header(self.namespace, index, batch_id or self.subject.new_id())
        return days.sealed(days.frames(head, sessions, events))

    def session(self, *texts: str, day: int | None = None) -> pb.Session:
        """A session of the next day, in which the owner says these texts."""
        return days.session(self.subject.new_id(), texts, day=self.last_day + 1 if day is None else day)

    def commit(self, frames: Sequence[pb.IngestRequest]) -> pb.IngestResponse:
        """Send a sound day, which must be taken."""
        response = self.expect_ok(lambda: self.subject.ingest(frames), "a sound day")
        self.note(frames)
        if response.visible_through_day != self.last_day:
            raise BrokenError(f"Ingest of day {self.last_day} says visible_through_day {response.visible_through_day}")
        return response

    def note(self, frames: Iterable[pb.IngestRequest]) -> None:
        """Remember a day as committed."""
        for frame in frames:
            if frame.HasField("header"):
                self.last_day = max(self.last_day, frame.header.day_index)
            elif frame.HasField("session") and not frame.session.continuation:
                self.sessions.append(frame.session)

    def tell(self, *facts: Fact, day: int | None = None) -> pb.IngestResponse:
        """Commit a day with a session for each fact."""
        index = self.last_day + 1 if day is None else day
        sessions = [
            days.session(self.subject.new_id(), [fact.statement], day=index, minute=5 * number)
            for number, fact in enumerate(facts)
        ]
        return self.commit(self.frames(*sessions, day=index))

    # ---------------------------------------------------------------- questions

    def question(self, text: str, as_of_day: int | None = None) -> pb.SearchRequest:
        """A sound question of the owner, as of the last committed day by default."""
        as_of = max(self.last_day, 0) if as_of_day is None else as_of_day
        request = pb.SearchRequest(
            namespace=self.namespace,
            query_id=self.subject.new_id(),
            text=text,
            asked_at=days.moment(max(as_of, self.last_day) + 1),
            as_of_day=as_of,
            requester=pb.Requester(kind=pb.REQUESTER_KIND_OWNER),
        )
        if self.subject.diagnostic:
            # Newest first, so that a bound on items or tokens leaves the session that was just told.
            newest = [session.session_id for session in reversed(self.sessions)]
            request.privileged_evidence.CopyFrom(pb.PrivilegedEvidence(session_ids=newest))
        return request

    def search(self, text: str, as_of_day: int | None = None) -> pb.SearchResponse:
        """A sound question, which must be answered."""
        request = self.question(text, as_of_day)
        return self.expect_ok(lambda: self.subject.search(request), "a sound question")

    def items(
        self, fact: Fact, as_of_day: int | None = None, *, verbatim: bool | None = None
    ) -> Sequence[pb.MemoryItem]:
        """What is found for a fact's question, which must be something that holds it; by default in its own words
        where words are kept.
        """
        in_words = self.subject.keeps_words if verbatim is None else verbatim
        deadline = time.monotonic() + self.subject.patience.settle_s
        while True:
            response = self.search(fact.question, as_of_day)
            if shows(response.items, fact, verbatim=in_words):
                return response.items
            # Whether it was there at once is for one check alone (ing.ready).
            if time.monotonic() > deadline:
                raise BrokenError(f"{_quoted(fact)} was committed, but is not found ({_seen(response.items)})")
            time.sleep(_POLL_S)

    def expect_visible(self, *facts: Fact, as_of_day: int | None = None) -> None:
        """Each fact is found."""
        for fact in facts:
            self.items(fact, as_of_day)

    def expect_hidden(self, fact: Fact, why: str, as_of_day: int | None = None) -> None:
        """A fact is not found, whether the question names it or not. Put :meth:`expect_visible` beside it."""
        response = self.search(fact.question, as_of_day)
        if mentions(response.items, fact):
            raise BrokenError(f"{_quoted(fact)} is found, but {why}")

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
        """Send a request with model access of its own."""
        with self.subject.access("Answer", script, models) as access:
            sent = pb.AnswerRequest()
            sent.CopyFrom(request)
            if sent.HasField("search") and not sent.search.HasField("model_access"):
                sent.search.model_access.CopyFrom(access)
            return self.subject.wire.answer(sent, deadline_s, on_event)

    # ---------------------------------------------------------------- expectations

    def expect_ok(self, call: Callable[[], T], what: str) -> T:
        """The call must work, after a wait if the backend asks for one."""
        try:
            return self.subject.settled(call)
        except RefusedError as error:
            raise BrokenError(f"{what} was refused: {error}") from error


def expect_refused(
    call: Callable[[], object], code: str | Sequence[str], what: str, *, field: str | None = None
) -> RefusedError:
    """The call must fail with this code, and name this field (or one within it) in its BadRequest if one is given."""
    codes = (code,) if isinstance(code, str) else tuple(code)
    try:
        call()
    except RefusedError as error:
        if error.code not in codes:
            raise BrokenError(f"{what}: expected {' or '.join(codes)}, got {error}") from error
        if field is not None and not any(named == field or named.startswith(f"{field}.") for named in error.fields):
            raise BrokenError(f"{what}: expected a BadRequest that names {field}, got {error}") from error
        return error
    raise BrokenError(f"{what}: expected {' or '.join(codes)}, but the call was answered with OK")


def with_access(frames: Iterable[pb.IngestRequest], access: pb.ModelAccess) -> list[pb.IngestRequest]:
    """The frames with model access in every header that has none."""
    sent = []
    for frame in frames:
        if frame.HasField("header") and not frame.header.HasField("model_access"):
            copy = pb.IngestRequest()
            copy.CopyFrom(frame)
            copy.header.model_access.CopyFrom(access)
            sent.append(copy)
        else:
            sent.append(frame)
    return sent


def _offering(access: pb.ModelAccess, models: Sequence[pb.Model]) -> pb.ModelAccess:
    """The same access to other models, as another cell has it."""
    return pb.ModelAccess(base_url=access.base_url, token=access.token, models=models)


def shows(items: Iterable[pb.MemoryItem], fact: Fact, *, verbatim: bool) -> bool:
    """Whether an item holds a fact: its words as they were sent, or, where words may be lost, its value."""
    if verbatim:
        return any(fact.statement in item.text for item in items)
    return mentions(items, fact)


def mentions(items: Iterable[pb.MemoryItem], fact: Fact) -> bool:
    """Whether an item holds the value of a fact in any letter case."""
    return any(fact.value.lower() in item.text.lower() for item in items)


def differs(first: Sequence[pb.MemoryItem], second: Sequence[pb.MemoryItem]) -> bool:
    """Whether two results are not the same items in the same order. Scores may differ in their last digits."""

    def essence(items: Sequence[pb.MemoryItem]) -> list[tuple[str, Sequence[str], Sequence[str]]]:
        return [(item.text, list(item.source_session_ids), list(item.source_turn_ids)) for item in items]

    return essence(first) != essence(second)


def changed(
    frames: Sequence[pb.IngestRequest], edit: Mapping[int, Callable[[pb.IngestRequest], object]]
) -> list[pb.IngestRequest]:
    """A copy of frames, some of them edited by their place."""
    copies = []
    for place, frame in enumerate(frames):
        copy = pb.IngestRequest()
        copy.CopyFrom(frame)
        if place in edit:
            edit[place](copy)
        copies.append(copy)
    return copies


def _quoted(fact: Fact) -> str:
    return f"“{fact.statement[:80]}”"


def _seen(items: Sequence[pb.MemoryItem]) -> str:
    return "no items" if not items else f"{len(items)} items, the first {items[0].text[:80]!r}"
