"""Computes the costs of a row: tokens, decoding speed, Search by the turns held, ingest by day, energy.

Costs are computed apart from scores, as they need the facts of the run: model calls, ingested turns, phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median

from memarena.log.projection import ProjectedCall
from memarena.log.records import FootprintTaken, PhaseMeasured, Record
from memarena.scoring.figures import Percentiles
from memarena.scoring.results import QuestionScore, RowScores
from memarena.scoring.run_facts import Attempt, IngestFacts, RunFacts
from memarena.scoring.timing import LEAST_N, percentiles

BUCKETS = 4
"""Number of buckets of equal size into which questions are divided, ordered by the turns that the memory held."""


class Efficiency(Record):
    """Medians over the answered questions of a row's headline seeds; None: no readings, or too few for a median."""

    questions: int
    model_calls: float | None
    """Mean model calls per answer."""
    prompt_tokens_p50: float | None
    completion_tokens_p50: float | None
    decode_tokens_per_s_p50: float | None
    """Tokens after the first over the time from first to last content at the gateway."""
    answer_ms: Percentiles
    """Duration of Answer, from the request to its end."""


class HistoryBucket(Record):
    """Search over questions that were asked of a memory of about the same size."""

    turns_low: int
    turns_p50: float
    turns_high: int
    search: Percentiles


class DayCosts(Record):
    """What a memory costs at the end of a day of the life."""

    day: int
    turns_held: float
    """Turns in the memory of an ego at the end of the day, mean over the egos that have the day."""
    ingest_ms: float | None
    """Mean duration of Ingest of an ego's day; None if it was not timed."""
    search: Percentiles
    """Times of Search over questions asked after this day and before the next."""


class RowCosts(Record):
    """Costs of one row of the report, named as the row's cells without their seed."""

    label: str
    efficiency: Efficiency | None
    """Tokens, speed and time of an answer; None if no question was answered."""
    history: tuple[HistoryBucket, ...]
    """Search by size of the memory, smallest first; empty if no Search was timed or the memory never grew."""
    days: tuple[DayCosts, ...] = ()
    """Days that the row's headline seeds ingested, in order."""
    phases: tuple[PhaseMeasured, ...] = ()
    """Energy of the row's cells, their days and their questions; empty if nothing was metered."""
    footprints: tuple[FootprintTaken, ...] = ()
    """Memory and disk of the backend, the last measurement of each cell."""


def run_costs(facts: RunFacts, rows: Iterable[RowScores], questions: Sequence[QuestionScore]) -> tuple[RowCosts, ...]:
    """Compute the costs of every row of a run."""
    by_cell: dict[str, list[QuestionScore]] = {}
    for question in questions:
        if question.spans is not None:
            by_cell.setdefault(question.cell_id, []).append(question)
    return tuple(_row_costs(facts, row, by_cell) for row in rows)


def _row_costs(facts: RunFacts, row: RowScores, by_cell: dict[str, list[QuestionScore]]) -> RowCosts:
    """Return the costs of a row, from the answered questions of its timed segment."""
    cells = [c.cell_id for c in row.cells if c.seed_label in row.headline_seeds]
    segment = row.latency.segment if row.latency else None
    answered = [
        (question, facts.attempts[question.cell_id, question.instance_id][-1])
        for cell in cells
        for question in by_cell.get(cell, ())
        if question.spans is not None and question.spans.segment == segment
    ]
    cell_ids = {cell.cell_id for cell in row.cells}
    return RowCosts(
        label=row.label,
        efficiency=_efficiency(facts, answered),
        history=_history(facts, answered),
        days=_days(facts, cells, answered, timed=row.ingest is not None and row.ingest.seconds is not None),
        phases=tuple(phase for phase in facts.phases if phase.cell_id in cell_ids),
        footprints=tuple(footprint for cell, footprint in facts.footprints.items() if cell in cell_ids),
    )


def _efficiency(facts: RunFacts, answered: Sequence[tuple[QuestionScore, Attempt]]) -> Efficiency | None:
    spans = [(attempt, attempt.record.answer) for _, attempt in answered if attempt.record.answer is not None]
    if not spans:
        return None
    calls = [call for attempt, _ in spans if (call := _reading_call(facts, attempt)) is not None]
    return Efficiency(
        questions=len(spans),
        model_calls=sum(answer.model_calls for _, answer in spans) / len(spans),
        prompt_tokens_p50=_median(call.prompt_tokens for call in calls),
        completion_tokens_p50=_median(call.completion_tokens for call in calls),
        decode_tokens_per_s_p50=_median(_decode_speed(call) for call in calls),
        answer_ms=percentiles(None if a.completed_ns is None else a.completed_ns / 1e6 for _, a in spans),
    )


def _reading_call(facts: RunFacts, attempt: Attempt) -> ProjectedCall | None:
    """Return the model call that wrote the answer: the last one with content; None if there is none."""
    calls = [facts.calls[c] for c in attempt.record.gateway_call_ids if c in facts.calls]
    return next((c for c in reversed(calls) if c.first_content_ns is not None), None)


def _decode_speed(call: ProjectedCall) -> float | None:
    if call.completion_tokens is None or call.first_content_ns is None or call.last_content_ns is None:
        return None
    span_s = (call.last_content_ns - call.first_content_ns) / 1e9
    return (call.completion_tokens - 1) / span_s if span_s > 0 and call.completion_tokens > 1 else None


def _median(values: Iterable[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return float(median(numbers)) if len(numbers) >= LEAST_N[50] else None


def _history(facts: RunFacts, answered: Sequence[tuple[QuestionScore, Attempt]]) -> tuple[HistoryBucket, ...]:
    """Return search times by size of history, in BUCKETS parts of equal size; () if the size never differs."""
    growth: dict[str, dict[str, list[tuple[int, int]]]] = {}
    samples = []
    for question, attempt in answered:
        cell = question.cell_id
        if cell not in growth:
            growth[cell] = _growth(facts.ingests.get(cell))
        turns = _turns_by(growth[cell].get(attempt.record.namespace, []), attempt.record.day)
        if turns is not None and question.spans is not None and question.spans.search_ms is not None:
            samples.append((turns, question.spans.search_ms))
    samples.sort()
    if not samples or samples[0][0] == samples[-1][0]:
        return ()
    cuts = [len(samples) * part // BUCKETS for part in range(BUCKETS + 1)]
    parts = [samples[a:b] for a, b in pairwise(cuts) if b > a]
    return tuple(
        HistoryBucket(
            turns_low=part[0][0],
            turns_p50=float(median(turns for turns, _ in part)),
            turns_high=part[-1][0],
            search=percentiles(ms for _, ms in part),
        )
        for part in parts
    )


def _days(
    facts: RunFacts, cells: Sequence[str], answered: Sequence[tuple[QuestionScore, Attempt]], *, timed: bool
) -> tuple[DayCosts, ...]:
    """Return mean turns, ingest time and search times by day; no ingest times unless ``timed``."""
    turns_by_day: dict[int, list[int]] = {}
    ingest_ns: dict[int, list[int]] = {}
    for cell in cells:
        ingests = facts.ingests.get(cell)
        for growth in _growth(ingests).values():
            for day, turns in growth:
                turns_by_day.setdefault(day, []).append(turns)
        for (_, day), ns in (ingests.ns_on if ingests and timed else {}).items():
            ingest_ns.setdefault(day, []).append(ns)
    search_ms: dict[int, list[float | None]] = {}
    for question, attempt in answered:
        search_ms.setdefault(attempt.record.day, []).append(question.spans.search_ms if question.spans else None)
    return tuple(
        DayCosts(
            day=day,
            turns_held=fmean(turns_by_day[day]),
            ingest_ms=fmean(ingest_ns[day]) / 1e6 if day in ingest_ns else None,
            search=percentiles(search_ms.get(day, ())),
        )
        for day in sorted(turns_by_day)
    )


def _growth(ingests: IngestFacts | None) -> dict[str, list[tuple[int, int]]]:
    """Return by namespace its days in order, each with the number of turns held from then on."""
    days: dict[str, list[tuple[int, int]]] = {}
    for (namespace, day), turns in sorted((ingests.turns_on if ingests else {}).items()):
        days.setdefault(namespace, []).append((day, turns))
    return {
        namespace: list(zip((d for d, _ in steps), accumulate(t for _, t in steps), strict=True))
        for namespace, steps in days.items()
    }


def _turns_by(growth: Sequence[tuple[int, int]], day: int) -> int | None:
    """Return the number of turns held at the end of a day; None if no day up to it arrived."""
    turns_so_far = [turns for on, turns in growth if on <= day]
    return turns_so_far[-1] if turns_so_far else None
