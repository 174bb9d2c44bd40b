"""Reads the times of answered questions from the facts of runs, as the samples of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena.latency.results import Sample
from memarena.log.projection import ProjectedCall
from memarena.log.records import Cell
from memarena.scoring.run_facts import Attempt, RunFacts


@dataclass(frozen=True)
class CellSamples:
    """A timed cell. A segment is the part of a run that one process executes: only times within it are comparable."""

    cell: Cell
    samples: tuple[Sample, ...]
    """Samples of the segment with most of them."""
    left_out: int
    """Number of samples of other segments."""
    failed: int
    """Number of questions without an answer."""


def cell_samples(run: str, facts: RunFacts) -> list[CellSamples]:
    """Return the samples of all timed cells. Failed questions have no sample; times of two processes never mix."""
    samples = []
    for cell in facts.manifest.cells:
        if not cell.timing:
            continue
        latest = [facts.attempts[key][-1] for key in facts.attempts if key[0] == cell.cell_id]
        answered = [a for a in latest if a.record.status == "answered"]
        timed = [(a, sample) for a in answered if (sample := _sample(run, cell, a, facts.calls)) is not None]
        segment = _main_segment([a for a, _ in timed])
        main_samples = tuple(sample for a, sample in timed if a.segment == segment)
        samples.append(CellSamples(cell, main_samples, len(timed) - len(main_samples), len(latest) - len(answered)))
    return samples


def _main_segment(attempts: Sequence[Attempt]) -> int:
    """Return the segment of the run with most samples; the first of several."""
    counts = Counter(a.segment for a in attempts)
    return min(counts, key=lambda segment: (-counts[segment], segment), default=0)


def _sample(run: str, cell: Cell, attempt: Attempt, calls: Mapping[str, ProjectedCall]) -> Sample | None:
    """Return the times of one question; None if its answer has no model call with known token counts."""
    record = attempt.record
    answer = record.answer
    if answer is None:
        return None
    attempt_calls = [calls[c] for c in record.gateway_call_ids if c in calls]
    call = next((c for c in reversed(attempt_calls) if c.first_content_ns is not None), None)
    if call is None or call.prompt_tokens is None or call.completion_tokens is None:
        return None
    rest_ns = answer.rest_ns
    return Sample(
        run=run,
        cell_id=cell.cell_id,
        reader=cell.reader,
        backend=backend_label(cell),
        instance_id=record.instance_id,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        cached_tokens=call.cached_tokens,
        ttft_ms=_ms(call.first_content_ns),
        llm_ms=_ms(call.done_ns),
        search_ms=_ms(record.search.t_search_ns if record.search else None),
        rest_ms=_ms(rest_ns),
        server_prompt_ms=call.server_prompt_ms,
    )


def backend_label(cell: Cell) -> str:
    """Return a backend's name with its options, since other options make another memory."""
    options = ",".join(f"{key}={value}" for key, value in sorted(cell.backend_options.items()))
    return f"{cell.backend}[{options}]" if options else cell.backend


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
