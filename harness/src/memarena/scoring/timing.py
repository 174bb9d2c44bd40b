"""Percentiles of times, each only where enough samples stand behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from memarena.scoring.figures import Floor, Ingest, Latency, Percentiles
from memarena.scoring.results import QuestionScore, Spans
from memarena.scoring.run_facts import IngestFacts, RunFacts

LEAST_N = {50: 11, 90: 64, 95: 130, 99: 662}
"""Samples from which a percentile is known with 99% confidence (design 5)."""


def percentiles(samples_ms: Iterable[float | None]) -> Percentiles:
    """Percentiles (linear interpolation) of the samples that were read; None where there are too few for one."""
    values = np.array([s for s in samples_ms if s is not None], dtype=np.float64)
    value = {p: float(np.percentile(values, p)) if len(values) >= least else None for p, least in LEAST_N.items()}
    return Percentiles(n=len(values), p50=value[50], p90=value[90], p95=value[95], p99=value[99])


def latency(questions: Sequence[QuestionScore], floor: Floor | None = None) -> Latency | None:
    """Times of answered questions, of the segment with most samples; None without any."""
    spans = [q.spans for q in questions if q.spans is not None]
    if not spans:
        return None
    counts = Counter(s.segment for s in spans)
    segment = min(counts, key=lambda s: (-counts[s], s))
    own = [s for s in spans if s.segment == segment]
    with_server_time = [s for s in own if s.server_prompt_ms is not None]
    search = percentiles(s.search_ms for s in own)
    null = None if floor is None else floor.search.p50
    return Latency(
        segment=segment,
        segments=len(counts),
        left_out=len(spans) - len(own),
        search=search,
        search_less_floor_p50=None if search.p50 is None or null is None else max(0.0, search.p50 - null),
        ttft=percentiles(s.ttft_ms for s in own),
        rest=percentiles(s.rest_ms for s in own),
        end_to_end=percentiles(_end_to_end(s) for s in own),
        first_delta=percentiles(s.first_delta_ms for s in own),
        gateway_ttft=percentiles(s.gateway_ttft_ms for s in with_server_time),
        server_prompt=percentiles(s.server_prompt_ms for s in with_server_time),
    )


def _end_to_end(spans: Spans) -> float | None:
    return None if spans.search_ms is None or spans.ttft_ms is None else spans.search_ms + spans.ttft_ms


def floor(facts: RunFacts) -> Floor | None:
    """The overhead baseline of the machine; None where it was not measured."""
    if not facts.floor_search_ns and not facts.floor_hop_ns:
        return None
    return Floor(
        search=percentiles(ns / 1e6 for ns in facts.floor_search_ns),
        gateway_hop=percentiles(ns / 1e6 for ns in facts.floor_hop_ns),
        gateway_added=percentiles(ns / 1e6 for ns in facts.floor_added_ns) if facts.floor_added_ns else None,
    )


def ingest_cost(ingests: Sequence[IngestFacts], *, timed: bool = True) -> Ingest | None:
    """What ingest cost over the cells given; None without a call. Times are None where the cells are not timed."""
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
