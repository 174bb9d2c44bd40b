"""Computes percentiles of times and the cost of Ingest; a percentile without enough samples is None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from memarena.scoring.figures import Floor, Ingest, Latency, Percentiles
from memarena.scoring.results import QuestionScore, Spans
from memarena.scoring.run_facts import IngestFacts, RunFacts

LEAST_N = {50: 11, 90: 64, 95: 130, 99: 662}
"""Least number of samples for each percentile: the least n with pⁿ + n · pⁿ⁻¹ · (1 - p) ≤ 1%, where p is 0.5 for p50.

With so many samples at least two lie above the true percentile with 99% confidence."""


def percentiles(samples_ms: Iterable[float | None]) -> Percentiles:
    """Compute percentiles (linear interpolation) of the samples that are not None."""
    values = np.array([s for s in samples_ms if s is not None], dtype=np.float64)
    value = {p: float(np.percentile(values, p)) if len(values) >= least else None for p, least in LEAST_N.items()}
    return Percentiles(n=len(values), p50=value[50], p90=value[90], p95=value[95], p99=value[99])


def latency(questions: Sequence[QuestionScore], floor: Floor | None = None) -> Latency | None:
    """Compute the times of answered questions, over the segment with the most samples; None without any.

    A segment is a process of the run; samples of two segments never mix. ``floor`` is that of the machine.
    """
    spans = [q.spans for q in questions if q.spans is not None]
    if not spans:
        return None
    counts = Counter(s.segment for s in spans)
    segment = min(counts, key=lambda s: (-counts[s], s))
    samples = [s for s in spans if s.segment == segment]
    with_server_time = [s for s in samples if s.server_prompt_ms is not None]
    search = percentiles(s.search_ms for s in samples)
    null = None if floor is None else floor.search.p50
    return Latency(
        segment=segment,
        segments=len(counts),
        left_out=len(spans) - len(samples),
        search=search,
        search_less_floor_p50=None if search.p50 is None or null is None else max(0.0, search.p50 - null),
        ttft=percentiles(s.ttft_ms for s in samples),
        rest=percentiles(s.rest_ms for s in samples),
        end_to_end=percentiles(_end_to_end(s) for s in samples),
        first_delta=percentiles(s.first_delta_ms for s in samples),
        gateway_ttft=percentiles(s.gateway_ttft_ms for s in with_server_time),
        server_prompt=percentiles(s.server_prompt_ms for s in with_server_time),
    )


def _end_to_end(spans: Spans) -> float | None:
    return None if spans.search_ms is None or spans.ttft_ms is None else spans.search_ms + spans.ttft_ms


def floor(facts: RunFacts) -> Floor | None:
    """Return the overhead baseline of the machine; None if it was not measured."""
    if not facts.floor_search_ns and not facts.floor_hop_ns:
        return None
    return Floor(
        search=percentiles(ns / 1e6 for ns in facts.floor_search_ns),
        gateway_hop=percentiles(ns / 1e6 for ns in facts.floor_hop_ns),
        gateway_added=percentiles(ns / 1e6 for ns in facts.floor_added_ns) if facts.floor_added_ns else None,
    )


def ingest_cost(ingests: Sequence[IngestFacts], *, timed: bool = True) -> Ingest | None:
    """Sum the cost of Ingest over cells; None without cells. Times are None if the cells are not timed."""
    if not ingests:
        return None
    seconds = sum(i.duration_ns for i in ingests) / 1e9
    sessions, size = sum(i.sessions for i in ingests), sum(i.payload_bytes for i in ingests)
    return Ingest(
        days=sum(i.days for i in ingests),
        failed=sum(i.failed for i in ingests),
        sessions=sessions,
        turns=sum(i.turns for i in ingests),
        seconds=seconds if timed else None,
        sessions_per_s=sessions / seconds if seconds and timed else None,
        mb_per_s=size / 1e6 / seconds if seconds and timed else None,
        model_calls=sum(i.model_calls for i in ingests),
        prompt_tokens=sum(i.prompt_tokens for i in ingests),
        completion_tokens=sum(i.completion_tokens for i in ingests),
        model_seconds=sum(i.model_ns for i in ingests) / 1e9 if timed else None,
        unsized_calls=sum(i.unsized_calls for i in ingests),
        untimed_calls=sum(i.untimed_calls for i in ingests) if timed else 0,
    )
