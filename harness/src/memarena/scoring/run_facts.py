"""Gathers from the records of a run only what scoring needs; texts of prompts, for example, stay in the log.

A log may be far larger than memory. :class:`RunFactsBuilder` gets its records one by one and keeps sums and short
records of them. *Floor*: the times of a null backend and a null reader, which are the overhead of the harness itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from memarena_dataset.gold import PermissionGold

from memarena.log.projection import WRITING_ROUTES, ProjectedAttempt, ProjectedCall
from memarena.log.records import (
    AnyRecord,
    BackendDescribed,
    BucketNamed,
    DeletionProbed,
    EvidenceSession,
    FootprintTaken,
    IngestDone,
    JudgingFailed,
    Manifest,
    Notice,
    PhaseMeasured,
    Question,
    QuestionAsked,
    ReaderRef,
    RunEnded,
    RunStarted,
    Verdict,
)
from memarena.scoring.errors import ScoringError
from memarena.scoring.retrieved_evidence import RetrievedEvidence, retrieved_evidence

_CALLER_GONE = 499
"""Status of a call whose caller hung up; the model may have read the prompt and written a reply anyway."""
_READING_ROUTES = WRITING_ROUTES | {"/v1/embeddings", "/v1/rerank"}
"""Routes on which a model reads a text, so that a call has a number of prompt tokens."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a question, without the texts of its items."""

    record: QuestionAsked
    """The record without the items of Search and Answer; ``raw`` is set only for D6."""
    segment: int
    """Index of the segment in which it was made, from 0 (:attr:`RunFacts.segments`)."""
    evidence: RetrievedEvidence | None
    """The evidence that Search returned; None if Search failed."""


@dataclass
class IngestFacts:
    """Sums over the Ingest calls of a cell, and the days of each namespace that were committed."""

    days: int = 0
    """Number of Ingest calls that ended OK and were no replays of a committed day. ``sessions``, ``turns``,
    ``payload_bytes`` and ``duration_ns`` are over these."""
    failed: int = 0
    """Number of Ingest calls that did not end OK."""
    sessions: int = 0
    turns: int = 0
    payload_bytes: int = 0
    duration_ns: int = 0
    committed: set[tuple[str, int]] = field(default_factory=set)
    """(namespace, day) of each committed day, replayed or not."""
    turns_on: dict[tuple[str, int], int] = field(default_factory=dict)
    """Number of turns that were committed, by namespace and day."""
    ns_on: dict[tuple[str, int], int] = field(default_factory=dict)
    """Duration of Ingest in nanoseconds, by namespace and day."""
    notices: dict[tuple[str, int], tuple[Notice, ...]] = field(default_factory=dict)
    """Notices of the memory on Ingest, by namespace and day."""
    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Tokens of prompts and replies that the server reported; ``unsized_calls`` counts the calls without a report."""
    model_ns: int = 0
    """Duration of its model calls, to the end of a call if known, else to its last content, else 0."""
    unsized_calls: int = 0
    """Model calls whose tokens are not all known although a model worked: the caller hung up before they were
    reported, or the server reports none. Calls that the server refused do not count."""
    untimed_calls: int = 0
    """Model calls whose end was not observed."""


@dataclass
class RunFacts:
    """The facts of a run that scoring needs.

    :class:`RunFactsBuilder` fills them while a log is read, and ``join_facts`` for a sweep; all others only read them.
    """

    started: RunStarted
    questions: dict[str, Question] = field(default_factory=dict)
    """Questions by instance id."""
    evidence: dict[str, EvidenceSession] = field(default_factory=dict)
    """Evidence sessions by their id."""
    described: dict[str, BackendDescribed] = field(default_factory=dict)
    """By cell, what its backend last reported about itself."""
    not_isolated: set[str] = field(default_factory=set)
    """Cells whose backend could read the data set at any time."""
    attempts: dict[tuple[str, str], list[Attempt]] = field(default_factory=dict)
    """Attempts by cell and instance id, in the order in which they were made; the last one counts."""
    verdicts: list[Verdict] = field(default_factory=list)
    buckets: list[BucketNamed] = field(default_factory=list)
    judging_failures: list[JudgingFailed] = field(default_factory=list)
    calls: dict[str, ProjectedCall] = field(default_factory=dict)
    """Model calls by their id at the gateway."""
    after_return: dict[str, int] = field(default_factory=dict)
    """By cell, number of model calls that the backend made after its RPC had returned."""
    budget_refusals: dict[str, int] = field(default_factory=dict)
    """By cell, number of model calls that were refused because a budget was used up."""
    ingests: dict[str, IngestFacts] = field(default_factory=dict)
    """Sums over Ingest calls, by cell."""
    floor_search_ns: list[int] = field(default_factory=list)
    """Round trips of Search to the null backend, in nanoseconds."""
    floor_hop_ns: list[int] = field(default_factory=list)
    """Times from a request at the gateway to the null reader's first token (a *hop*), in nanoseconds."""
    phases: list[PhaseMeasured] = field(default_factory=list)
    footprints: dict[str, FootprintTaken] = field(default_factory=dict)
    """By cell its last footprint, with the highest memory peak of all its footprints."""
    floor_added_ns: list[int] = field(default_factory=list)
    """Times that the gateway adds to the null reader's first token, compared with a direct call, in nanoseconds."""
    deletions: dict[str, list[DeletionProbed]] = field(default_factory=dict)
    """Deletion probes by cell."""
    problems: list[str] = field(default_factory=list)
    ended: RunEnded | None = None
    """None while a process works on the run, or if the last process died."""
    segments: int = 1
    """Number of processes that worked on the run: 1, and one more for each time it was resumed."""

    @property
    def manifest(self) -> Manifest:
        """The run's manifest: data set, cells, readers, versions and settings."""
        return self.started.manifest


def gather(records: Iterable[AnyRecord], name: str = "log") -> RunFacts:
    """Gather the facts from records in the order of the log. Raises ScoringError if they are not those of a run.

    ``name``: the log's name in error messages.
    """
    builder = RunFactsBuilder(name)
    for record in records:
        builder.add(record)
    return builder.facts()


class RunFactsBuilder:
    """Builds the facts of a run from the records of its log, one by one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._facts: RunFacts | None = None
        self._evidence_by_search: dict[tuple[str, str, tuple[int, ...] | None], RetrievedEvidence] = {}
        """Counts by (instance id, key of the search result, indices of the items in the prompt)."""
        self._session_by_turn: dict[str, str] = {}
        """Session id by id of each evidence turn."""

    def facts(self) -> RunFacts:
        """Return the facts so far, to which later records are still added. Raises ScoringError without any record."""
        if self._facts is None:
            raise ScoringError(f"{self._name}: the log holds no run yet")
        return self._facts

    def wants_raw(self, instance_id: str) -> bool:
        """Whether judging a question needs its raw output: only in D6, where the fact may be in it."""
        question = self._facts.questions.get(instance_id) if self._facts else None
        return question is not None and isinstance(question.instance.gold, PermissionGold)

    def add(self, record: AnyRecord | ProjectedAttempt | ProjectedCall) -> None:
        """Add the next record. Raises ScoringError if the log does not begin with run_started."""
        facts = self._facts
        if facts is None:
            if isinstance(record, ProjectedAttempt | ProjectedCall) or record.kind != "run_started":
                raise ScoringError(f"{self._name}: the log does not begin with run_started, so it says nothing")
            self._facts = RunFacts(record)
        elif isinstance(record, ProjectedAttempt):
            self._add_attempt(facts, record)
        elif isinstance(record, ProjectedCall):
            _add_call(facts, record)
        elif record.kind == "asked":
            self._add_attempt(facts, ProjectedAttempt.of(record))
        elif record.kind == "gateway_call":
            _add_call(facts, ProjectedCall.of(record))
        else:
            if record.kind == "evidence":
                self._session_by_turn.update((turn.turn_id, record.session.session_id) for turn in record.session.turns)
            _add_record(facts, record)

    def _add_attempt(self, facts: RunFacts, attempt: ProjectedAttempt) -> None:
        record = attempt.record
        question = facts.questions.get(record.instance_id)
        if question is None:
            raise ScoringError(f"{self._name}: question {record.instance_id} was asked but is not in the log")
        attempts = facts.attempts.setdefault((record.cell_id, record.instance_id), [])
        attempts.append(Attempt(record, facts.segments - 1, self._retrieved_evidence(question, attempt)))

    def _retrieved_evidence(self, question: Question, attempt: ProjectedAttempt) -> RetrievedEvidence | None:
        """Return the evidence of an attempt; None if Search failed.

        Seeds and readers of a backend share search results, so each result is compared with the evidence once.
        """
        record = attempt.record
        if record.search is None or record.search.code != "OK":
            return None
        items_read, in_prompt = attempt.search_items, None
        if record.answer is not None:
            in_prompt = record.answer.shown_items
            if attempt.answer_items.items and not record.answer.searched_items:
                items_read = attempt.answer_items
        key = (record.instance_id, attempt.search_items.key or "", in_prompt)
        is_shared = attempt.search_items.key is not None and items_read is attempt.search_items
        evidence = self._evidence_by_search.get(key) if is_shared else None
        if evidence is None:
            evidence = retrieved_evidence(
                question, attempt.search_items.items, items_read.items, in_prompt, self._session_by_turn
            )
            if is_shared:
                self._evidence_by_search[key] = evidence
        if record.answer is None:  # the prompt is unknown
            return replace(evidence, retrieved=evidence.retrieved.model_copy(update={"suffices": None}))
        return evidence


def _add_record(facts: RunFacts, record: AnyRecord) -> None:
    """Add a record that is neither an attempt nor a model call; kinds that scoring does not need are ignored."""
    if record.kind == "question":
        facts.questions[record.instance.instance_id] = record
    elif record.kind == "evidence":
        facts.evidence[record.session.session_id] = record.session
    elif record.kind == "verdict":
        facts.verdicts.append(record)
    elif record.kind == "bucket":
        facts.buckets.append(record)
    elif record.kind == "judging_failed":
        facts.judging_failures.append(record)
    elif record.kind == "ingest":
        _add_ingest(facts, record)
    else:
        _add_course_record(facts, record)


def _add_course_record(facts: RunFacts, record: AnyRecord) -> None:
    """Add a record about the course of the run, such as its end, floor or footprints."""
    if record.kind == "run_resumed":
        facts.segments += 1
        facts.ended = None
    elif record.kind == "run_ended":
        facts.ended = record
    elif record.kind == "backend_described":
        facts.described[record.cell_id] = record
        if record.isolation == "none":
            facts.not_isolated.add(record.cell_id)
    elif record.kind == "floor":
        facts.floor_search_ns += record.search_ns
        facts.floor_hop_ns += record.gateway_hop_ns
        facts.floor_added_ns += record.gateway_added_ns
    elif record.kind == "reader_probed" and record.started is not None:
        facts.started = _with_reader(facts.started, record.started)
    elif record.kind == "phase_measured":
        facts.phases.append(record)
    elif record.kind == "footprint":
        _add_footprint(facts, record)
    elif record.kind == "deletion_probed":
        facts.deletions.setdefault(record.cell_id, []).append(record)
    elif record.kind == "problem":
        facts.problems.append(f"{record.cause}: {record.where}: {record.message}")


def _with_reader(started: RunStarted, reader: ReaderRef) -> RunStarted:
    """Replace a reader in the manifest by the one that it reported when it started, after the run began."""
    readers = tuple(reader if other.name == reader.name else other for other in started.manifest.readers)
    return started.model_copy(update={"manifest": started.manifest.model_copy(update={"readers": readers})})


def _add_call(facts: RunFacts, call: ProjectedCall) -> None:
    facts.calls[call.call_id] = call
    if call.cell_id is None:
        return
    if call.refusal == "budget_spent":
        facts.budget_refusals[call.cell_id] = facts.budget_refusals.get(call.cell_id, 0) + 1
    if call.phase == "after_return":
        facts.after_return[call.cell_id] = facts.after_return.get(call.cell_id, 0) + 1
    elif call.phase == "ingest":
        _add_ingest_call(facts.ingests.setdefault(call.cell_id, IngestFacts()), call)


def _add_ingest_call(ingest: IngestFacts, call: ProjectedCall) -> None:
    """Add the known sizes and times of a call, and count it as unsized or untimed if one was not reported."""
    ingest.model_calls += 1
    ingest.prompt_tokens += call.prompt_tokens or 0
    ingest.completion_tokens += call.completion_tokens or 0
    ingest.model_ns += call.done_ns or call.last_content_ns or 0
    ingest.untimed_calls += call.done_ns is None
    if 400 <= call.status < _CALLER_GONE or call.route not in _READING_ROUTES:
        # Refused by the server (a context too long, an unknown model), or a route that uses no model.
        return
    ingest.unsized_calls += call.prompt_tokens is None or (call.writes and call.completion_tokens is None)


def _add_footprint(facts: RunFacts, footprint: FootprintTaken) -> None:
    """Set a cell's latest footprint, with the highest memory peak so far."""
    previous = facts.footprints.get(footprint.cell_id)
    if previous is not None and (previous.memory_peak.value or 0) > (footprint.memory_peak.value or 0):
        footprint = footprint.model_copy(update={"memory_peak": previous.memory_peak})
    facts.footprints[footprint.cell_id] = footprint


def _add_ingest(facts: RunFacts, record: IngestDone) -> None:
    """Add an Ingest call to the sums of its cell; a replayed day counts only as committed."""
    ingest = facts.ingests.setdefault(record.cell_id, IngestFacts())
    if record.code != "OK":
        ingest.failed += 1
        return
    ingest.committed.add((record.namespace, record.day))
    ingest.turns_on[record.namespace, record.day] = record.turns
    if record.replayed:
        return
    if record.notices:
        ingest.notices[record.namespace, record.day] = record.notices
    ingest.days += 1
    ingest.sessions += record.sessions
    ingest.turns += record.turns
    ingest.payload_bytes += record.payload_bytes
    ingest.duration_ns += record.duration_ns
    ingest.ns_on[record.namespace, record.day] = record.duration_ns
