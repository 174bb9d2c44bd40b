"""The records of a run, gathered into what scoring needs and nothing more: texts of prompts stay in the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memarena.dataset.gold import ClozeGold
from memarena.log.records import (
    AnyRecord,
    BackendDescribed,
    EvidenceSession,
    GatewayCall,
    IngestDone,
    Manifest,
    Question,
    QuestionAsked,
    RetrievedItem,
    RunEnded,
    RunStarted,
    Verdict,
)
from memarena.log.store import read_records
from memarena.scoring.errors import ScoringError

BYTES_PER_TOKEN = 4
"""Context is counted as UTF-8 bytes over 4, the same for every reader."""


@dataclass(frozen=True)
class ItemIds:
    """Which sessions an item of a search came from."""

    session_ids: tuple[str, ...]


@dataclass(frozen=True)
class CallFacts:
    """What one model call cost."""

    first_content_ns: int | None
    server_prompt_ms: float | None
    last_content_ns: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt at a question without the texts of its items."""

    record: QuestionAsked
    """With the items of search and answer taken out."""
    segment: int
    items: tuple[ItemIds, ...] | None
    """Of Search; None where it failed."""
    context_bytes: int
    grep_choice: str | None
    """D1: the option that occurs most often in the items; None without a single best one."""


@dataclass
class IngestFacts:
    """Sums over the Ingest calls of a cell, and which days of which namespace arrived."""

    days: int = 0
    failed: int = 0
    sessions: int = 0
    turns: int = 0
    payload_bytes: int = 0
    duration_ns: int = 0
    committed: set[tuple[str, int]] = field(default_factory=set)
    turns_on: dict[tuple[str, int], int] = field(default_factory=dict)
    """Turns that arrived, by namespace and day."""
    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass
class RunFacts:
    """A run as scoring sees it. Filled by :func:`gather`, not changed afterwards."""

    started: RunStarted
    questions: dict[str, Question] = field(default_factory=dict)
    evidence: dict[str, EvidenceSession] = field(default_factory=dict)
    described: dict[str, BackendDescribed] = field(default_factory=dict)
    attempts: dict[tuple[str, str], list[Attempt]] = field(default_factory=dict)
    """By cell and instance, in the order in which they were made."""
    verdicts: list[Verdict] = field(default_factory=list)
    calls: dict[str, CallFacts] = field(default_factory=dict)
    after_return: dict[str, int] = field(default_factory=dict)
    ingests: dict[str, IngestFacts] = field(default_factory=dict)
    floor_search_ns: list[int] = field(default_factory=list)
    floor_hop_ns: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ended: RunEnded | None = None
    """None while a process works on the run, or where the last one died."""
    segments: int = 1

    @property
    def manifest(self) -> Manifest:
        """All that determines the run."""
        return self.started.manifest


def load_facts(run_dir: Path) -> RunFacts:
    """Facts of a run from its log. Raises LogError if it cannot be read, ScoringError if it holds no run."""
    return gather(read_records(run_dir), str(run_dir))


def gather(records: Iterable[AnyRecord], name: str = "log") -> RunFacts:
    """Facts from records in the order in which they were written. Raises ScoringError if they make no run."""
    facts: RunFacts | None = None
    for record in records:
        if record.kind == "run_started":
            facts = facts or RunFacts(record)
        elif facts is None:
            raise ScoringError(f"{name}: the log does not begin with run_started, so it says nothing of the run")
        else:
            _take(facts, record, name)
    if facts is None:
        raise ScoringError(f"{name}: the log holds no run yet")
    return facts


def _take(facts: RunFacts, record: AnyRecord, name: str) -> None:
    if record.kind == "question":
        facts.questions[record.instance.instance_id] = record
    elif record.kind == "evidence":
        facts.evidence[record.session.session_id] = record.session
    elif record.kind == "asked":
        facts.attempts.setdefault((record.cell_id, record.instance_id), []).append(_attempt(facts, record, name))
    elif record.kind == "verdict":
        facts.verdicts.append(record)
    elif record.kind == "gateway_call":
        _take_call(facts, record)
    elif record.kind == "ingest":
        _take_ingest(facts, record)
    else:
        _take_course(facts, record)


def _take_course(facts: RunFacts, record: AnyRecord) -> None:
    """Records about how the run went."""
    if record.kind == "run_resumed":
        facts.segments += 1
        facts.ended = None
    elif record.kind == "run_ended":
        facts.ended = record
    elif record.kind == "backend_described":
        facts.described[record.cell_id] = record
    elif record.kind == "floor":
        facts.floor_search_ns += record.search_ns
        facts.floor_hop_ns += record.gateway_hop_ns
    elif record.kind == "problem":
        facts.problems.append(f"{record.cause}: {record.where}: {record.message}")


def _attempt(facts: RunFacts, record: QuestionAsked, name: str) -> Attempt:
    question = facts.questions.get(record.instance_id)
    if question is None:
        raise ScoringError(f"{name}: question {record.instance_id} was asked but is not in the log")
    items = record.search.items if record.search is not None and record.search.code == "OK" else None
    gold = question.instance.gold
    slim = record.model_copy(
        update={
            "search": record.search.model_copy(update={"items": ()}) if record.search else None,
            "answer": record.answer.model_copy(update={"items": ()}) if record.answer else None,
        }
    )
    return Attempt(
        record=slim,
        segment=facts.segments - 1,
        items=None if items is None else tuple(ItemIds(item.session_ids) for item in items),
        context_bytes=sum(len(item.text.encode()) for item in items or ()),
        grep_choice=grep_choice(gold, items) if isinstance(gold, ClozeGold) and items is not None else None,
    )


def grep_choice(gold: ClozeGold, items: Sequence[RetrievedItem]) -> str | None:
    """The letter of the option that occurs most often in the items; None if none or several do."""
    context = "\n".join(item.text for item in items).casefold()
    counts = [len(re.findall(rf"(?<!\w){re.escape(option.casefold())}(?!\w)", context)) for option in gold.options]
    best = max(counts, default=0)
    if best == 0 or counts.count(best) > 1:
        return None
    return chr(ord("A") + counts.index(best))


def _take_call(facts: RunFacts, call: GatewayCall) -> None:
    facts.calls[call.call_id] = CallFacts(
        call.first_content_ns,
        call.server_prompt_ms,
        call.last_content_ns,
        call.prompt_tokens,
        call.completion_tokens,
    )
    if call.cell_id is None:
        return
    if call.phase == "after_return":
        facts.after_return[call.cell_id] = facts.after_return.get(call.cell_id, 0) + 1
    elif call.phase == "ingest":
        ingest = facts.ingests.setdefault(call.cell_id, IngestFacts())
        ingest.model_calls += 1
        ingest.prompt_tokens += call.prompt_tokens or 0
        ingest.completion_tokens += call.completion_tokens or 0


def _take_ingest(facts: RunFacts, done: IngestDone) -> None:
    ingest = facts.ingests.setdefault(done.cell_id, IngestFacts())
    if done.code != "OK":
        ingest.failed += 1
        return
    ingest.committed.add((done.namespace, done.day))
    ingest.turns_on[done.namespace, done.day] = done.turns
    if done.replayed:
        return
    ingest.days += 1
    ingest.sessions += done.sessions
    ingest.turns += done.turns
    ingest.payload_bytes += done.payload_bytes
    ingest.duration_ns += done.duration_ns
