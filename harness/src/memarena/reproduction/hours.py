"""Estimates how long steps take: from sealed cells of this machine, else from the times that the paper reports."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from memarena.paper.published import load_published
from memarena.paper.published_types import Published, TotalsRow
from memarena.reproduction.steps import Settings, Step, selection_size
from memarena.sweep.manifest import is_sweep, read_manifest

_LIKE = {"Mistral-7B": "Qwen3-8B"}
"""Readers without times in the paper, each with a reader of about its size that has them."""
_FAMILIES = 9
"""Families of questions that a study times."""
_REST_S = 240.0
"""Seconds at rest before and after a study."""
_SIZES = {"identity": ("D5", "D6"), "policy-header": ("D6",), "access-markers": ("D6",)}
"""Configurations that ask only questions of these dimensions."""


def hours_of(steps: Iterable[Step], settings: Settings) -> float | None:
    """Return the hours of all cells, one after the other; None if a reader has no times here or in the paper."""
    seconds = [_seconds(step, settings, load_published()) for step in steps]
    return None if None in seconds else sum(value for value in seconds if value is not None) / 3600


def _seconds(step: Step, settings: Settings, published: Published) -> float | None:
    """Return the seconds of a step: from its sealed cells, else by the paper's times; None without either."""
    if step.kind == "sweep" and (measured := _measured_seconds(step)) is not None:
        return measured * len(step.cells)
    times = next((row for row in published.totals if row.reader == _LIKE.get(step.reader, step.reader)), None)
    if times is None:
        return None
    questions = _questions(step, settings, published)
    total = sum(questions * _of_backend(times, memory) / 1000 for memory, _ in step.cells)
    memobase_cells = sum("memobase" in memory or memory == "structured" for memory, _ in step.cells)
    ingest = next((row.wall_s for row in published.ingest if row.reader == times.reader), 0.0)
    # The paper measures ingest over 8 egos; its data set has 50.
    egos = (selection_size(settings.limit)[0] if step.kind == "study" else 50) / 8
    return (
        total + memobase_cells * ingest * egos + (_REST_S if step.kind == "study" and settings.limit is None else 0.0)
    )


def _measured_seconds(step: Step) -> float | None:
    """Return the mean seconds of the step's sealed cells; None if there are none."""
    if not is_sweep(step.folder):
        return None
    sealed_cells = read_manifest(step.folder).sealed.values()
    return fmean(sealed_cell.seal.wall_s for sealed_cell in sealed_cells) if sealed_cells else None


def _questions(step: Step, settings: Settings, published: Published) -> int:
    if step.kind == "study":
        return selection_size(settings.limit)[1] * _FAMILIES
    counts = published.family_counts
    questions = sum(counts[name] for name in _SIZES.get(step.name, counts))
    return questions if settings.limit is None else min(questions, settings.limit)


def _of_backend(times: TotalsRow, memory: str) -> float:
    """Return the paper's time of an answer in ms; that of retrieval if the paper does not have the memory."""
    by_name = {"vanilla": times.vanilla, "oracle": times.oracle, "memsearch": times.memsearch}
    figure = times.memobase if "memobase" in memory else by_name.get(memory, times.in_memory)
    return figure.value if figure is not None else 0.0
