"""Checks the stopwatch: compares a reader's TTFT at the gateway with its server's own prompt time.

Both measure the same work at two points: if they differ by more than the tolerance, the gateway's times are in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence

from memarena.latency.composition import median_of
from memarena.latency.results import Sample, ServerCheck

SHARE, SLACK_MS = 0.05, 3.0
"""Tolerance: 5% of the server's time plus 3 ms."""


def server_check(reader: str, samples: Sequence[Sample]) -> ServerCheck:
    """Compare a reader's samples with its server's times; only counts if the server reports none."""
    reader_samples = [s for s in samples if s.reader == reader]
    pairs = [
        (s.ttft_ms, s.server_prompt_ms)
        for s in reader_samples
        if s.ttft_ms is not None and s.server_prompt_ms is not None
    ]
    return ServerCheck(
        reader=reader,
        n=len(reader_samples),
        told=len(pairs),
        within=sum(abs(ttft - reported) <= SHARE * reported + SLACK_MS for ttft, reported in pairs),
        difference_p50_ms=median_of([ttft - reported for ttft, reported in pairs]),
        difference_p50=median_of([(ttft - reported) / reported for ttft, reported in pairs if reported > 0]),
    )
