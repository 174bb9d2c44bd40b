"""Computes the composed table: T_total = T_LLM(reader, prompt, answer) + T_search(backend), measured or predicted.

A study need not run each backend with each reader: where it did not, the model call is predicted from the reader's fit
and the prompts that the backend gives another reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from memarena.latency.fit import predict
from memarena.latency.results import Fit, Sample, TotalCell
from memarena.scoring.timing import LEAST_N

LEAST = LEAST_N[50]
"""Least number of values for a median: 11."""


def median_of(values: Sequence[float | None]) -> float | None:
    """Return the median of the values that are not None; None if fewer than 11, too few for 99% confidence."""
    numbers = [value for value in values if value is not None]
    return float(median(numbers)) if len(numbers) >= LEAST else None


def search_times(samples: Sequence[Sample]) -> dict[str, float | None]:
    """Return the median Search in ms by backend, over the samples of all readers, as Search does not depend on them."""
    backends = dict.fromkeys(s.backend for s in samples)
    return {name: median_of([s.search_ms for s in samples if s.backend == name]) for name in backends}


def compose(
    readers: Sequence[str], backends: Sequence[str], samples: Sequence[Sample], fits: Mapping[str, Fit]
) -> list[TotalCell]:
    """Return a cell for each reader and backend: measured, predicted from the reader's fit, or n/a with the reason."""
    search = search_times(samples)
    cells = []
    for reader in readers:
        for backend in backends:
            cell_samples = [s for s in samples if (s.reader, s.backend) == (reader, backend)]
            fit = fits.get(reader)
            if cell_samples:
                cells.append(_measured_cell(reader, backend, cell_samples, search[backend], fit))
            else:
                cells.append(_predicted_cell(reader, backend, samples, search[backend], fit))
    return cells


def _measured_cell(
    reader: str, backend: str, own: Sequence[Sample], search_ms: float | None, fit: Fit | None
) -> TotalCell:
    """Return a cell whose questions were timed, with the fit's prediction for them, if there is a fit."""
    llm, ttft = median_of([s.llm_ms for s in own]), median_of([s.ttft_ms for s in own])
    total, first = _plus(llm, search_ms), _plus(ttft, search_ms)
    predicted = _by_fit(fit, own, search_ms) if fit is not None else (None, None)
    return TotalCell(
        reader=reader,
        backend=backend,
        kind="measured",
        n=len(own),
        total_ms=total,
        ttft_ms=first,
        search_ms=search_ms,
        predicted_total_ms=predicted[0],
        predicted_ttft_ms=predicted[1],
        outside_range=_outside(fit, own) if fit is not None else 0.0,
        why="" if total is not None else f"fewer than {LEAST} questions were timed",
    )


def _predicted_cell(
    reader: str, backend: str, samples: Sequence[Sample], search_ms: float | None, fit: Fit | None
) -> TotalCell:
    """Return a cell predicted from prompts that another reader got with this backend, or n/a with the reason."""
    nothing = TotalCell(reader=reader, backend=backend, kind="none", search_ms=search_ms)
    if fit is None:
        return nothing.model_copy(update={"why": f"{reader} has no fit, and nothing is extrapolated without one"})
    by_backend: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.backend == backend:
            by_backend.setdefault(sample.reader, []).append(sample)
    if not by_backend:
        return nothing.model_copy(update={"why": f"{backend} was never asked"})
    # The reader with most questions on this backend: its prompts replace those that this reader would get.
    donor = max(by_backend, key=lambda name: (len(by_backend[name]), name))
    prompts = by_backend[donor]
    total, first = _by_fit(fit, prompts, search_ms)
    return nothing.model_copy(
        update={
            "kind": "predicted" if total is not None else "none",
            "n": len(prompts),
            "total_ms": total,
            "ttft_ms": first,
            "prompts_from": donor,
            "outside_range": _outside(fit, prompts),
            "why": "" if total is not None else f"fewer than {LEAST} prompts are known",
        }
    )


def _by_fit(fit: Fit, prompts: Sequence[Sample], search_ms: float | None) -> tuple[float | None, float | None]:
    """Return the predicted medians in ms for these prompts: whole call and first token, each plus Search."""
    llm, ttft = fit.best("llm").coefficients, fit.best("ttft").coefficients
    total = median_of([predict(llm, s.prompt_tokens, s.completion_tokens) for s in prompts])
    first = median_of([predict(ttft, s.prompt_tokens, 0) for s in prompts])
    return _plus(total, search_ms), _plus(first, search_ms)


def _outside(fit: Fit, prompts: Sequence[Sample]) -> float:
    low, high = fit.prompt_tokens
    return sum(not low <= s.prompt_tokens <= high for s in prompts) / len(prompts)


def _plus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
