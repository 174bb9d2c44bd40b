"""Checks a log for contradictions: questions against their model calls, times against earlier times.

The log is a file of the operator, who could edit it; an edited log is likely to contradict itself in some of these.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from memarena.log.records import AnswerSpan, PhaseEnded, QuestionAsked
from memarena.log.store import LogReader, read_records
from memarena.scoring.run_facts import RunFacts
from pydantic import JsonValue

from memarena_spark.bundle.answers import check_answers
from memarena_spark.running import RunRecord

Call = Mapping[str, JsonValue]

_OF_A_QUESTION = ("search", "answer", "central", "refused")
"""Phases of model calls with a question's token; ``refused``: the gateway refused them, as the budget was spent."""
_MOMENTS = ("first_byte_ns", "first_content_ns", "last_content_ns", "done_ns")
"""Times of a call in their order; offsets from the forwarding of its request."""
_CLOCK_STEP_S = 2.0
"""Tolerance of wall times, which are truncated to whole seconds."""


def contradictions(facts: RunFacts, record: RunRecord, log_folder: Path) -> Iterator[str]:
    """Yield lines on where the log contradicts itself or the record of its run; the first of each kind."""
    yield from _clocks(facts, record)
    yield from _counts(facts, log_folder)
    calls = dict(_calls(log_folder))
    is_coherent = True
    attempts = [attempt.record for tries in facts.attempts.values() for attempt in tries]
    for lines in (
        (line for attempt in attempts for line in _own_calls(attempt, calls)),
        (line for attempt in attempts for line in _spans(attempt)),
        (line for name, call in calls.items() for line in _moments(name, call)),
        _order(facts),
    ):
        if (first := next(lines, None)) is not None:
            is_coherent = False
            yield first
    if is_coherent:  # the next checks need all calls of each question
        yield from check_answers(log_folder).contradictions


def _calls(log_folder: Path) -> Iterator[tuple[str, Call]]:
    with LogReader(log_folder) as log:
        for row in log.rows("gateway_call"):
            call = json.loads(row.body)
            yield str(call["call_id"]), call


def _clocks(facts: RunFacts, record: RunRecord) -> Iterator[str]:
    """Check that both clocks of the machine agree, and that the log's times are within those of its record."""
    span_s = (record.span.end_ns - record.span.start_ns) / 1e9
    if span_s <= 0:
        yield "the run ended before it began by the monotonic clock"
        return
    log_end = facts.ended.ended_at if facts.ended is not None else record.ended_at
    # In the order in which they must have happened.
    moments = (("run", record.started_at), ("log", facts.started.started_at), ("log's end", log_end),
             ("run's end", record.ended_at))  # fmt: skip
    for (before, first), (after, second) in pairwise(moments):
        if _moment(second) < _moment(first):
            yield f"by the wall clock the {after} ({second}) comes before the {before} ({first})"
            return
    whole_s = (_moment(record.ended_at) - _moment(record.started_at)).total_seconds()
    if whole_s + _CLOCK_STEP_S < span_s:
        yield f"the run took {span_s:.0f} s by the monotonic clock and {whole_s:.0f} s by the wall clock"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(microsecond=0)


def _counts(facts: RunFacts, log_folder: Path) -> Iterator[str]:
    """Check that the counts of a cell's phases match its log."""
    attempts = Counter(attempt.record.cell_id for tries in facts.attempts.values() for attempt in tries)
    for phase in read_records(log_folder, "phase"):
        if not isinstance(phase, PhaseEnded) or phase.cell_id is None or phase.queries is None:
            continue
        logged_count = attempts[phase.cell_id]
        if phase.queries != logged_count:
            metered = f"{phase.queries} questions in phase {phase.phase}"
            yield f"{phase.cell_id}: the meters tell of {metered}, the log holds {logged_count}"
            return


def _own_calls(attempt: QuestionAsked, calls: Mapping[str, Call]) -> Iterator[str]:
    """Check that the model calls of a question are in the log, are its own, and that one gave its first token."""
    question = f"{attempt.cell_id}: {attempt.instance_id}"
    question_calls = []
    for name in attempt.gateway_call_ids:
        call = calls.get(name)
        if call is None:
            yield f"{question}: its model call {name} is not in the log"
            return
        if (call["cell_id"], call["instance_id"]) != (attempt.cell_id, attempt.instance_id):
            yield f"{question}: its model call {name} is of another question"
        if call["phase"] not in _OF_A_QUESTION:
            yield f"{question}: its model call {name} is one of {call['phase']}"
        if _number(call["started_mono_ns"]) < attempt.asked_mono_ns:
            yield f"{question}: its model call {name} began before it was asked"
        question_calls.append(call)
    ttft_ns = attempt.answer.ttft_ns if attempt.answer is not None else None
    if ttft_ns is not None and ttft_ns not in [call["first_content_ns"] for call in question_calls]:
        yield f"{question}: no model call of it has its time to the first token"


def _spans(attempt: QuestionAsked) -> Iterator[str]:
    """Check that the spans of a question are not negative and in order."""
    question = f"{attempt.cell_id}: {attempt.instance_id}"
    search_ns = attempt.search.t_search_ns if attempt.search is not None else None
    if search_ns is not None and search_ns <= 0:
        yield f"{question}: Search took {search_ns} ns"
    moments = [at for at in _answer_moments(attempt.answer) if at is not None]
    if any(at < 0 for at in moments) or moments != sorted(moments):
        yield f"{question}: the moments of Answer are out of order"


def _answer_moments(answer: AnswerSpan | None) -> tuple[int | None, ...]:
    return () if answer is None else (answer.retrieved_ns, answer.first_delta_ns, answer.completed_ns)


def _moments(name: str, call: Call) -> Iterator[str]:
    """Check that the times of a call are not negative and in order."""
    moments = [_number(call[moment]) for moment in _MOMENTS if call[moment] is not None]
    if any(at < 0 for at in moments) or moments != sorted(moments):
        yield f"model call {name}: its moments are out of order"


def _order(facts: RunFacts) -> Iterator[str]:
    """Check that, if questions are sequential, none begins before the previous one ended."""
    timed_cells = {cell.cell_id for cell in facts.manifest.cells if cell.timing}
    attempts = [a.record for tries in facts.attempts.values() for a in tries if a.record.cell_id in timed_cells]
    for before, after in pairwise(sorted(attempts, key=lambda attempt: attempt.asked_mono_ns)):
        if after.asked_mono_ns < before.asked_mono_ns + _took_ns(before):
            yield f"{after.cell_id}: {after.instance_id} was asked before {before.instance_id} was over"


def _took_ns(attempt: QuestionAsked) -> int:
    search_ns = (attempt.search.t_search_ns or 0) if attempt.search is not None else 0
    moments = [at for at in _answer_moments(attempt.answer) if at is not None]
    return search_ns + max(moments, default=0)


def _number(value: JsonValue) -> int:
    """Return a number of nanoseconds. Raises ValueError for any other value."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r}: expected nanoseconds")
    return value
