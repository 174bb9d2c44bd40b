"""Least squares of a reader's times on prompt and answer lengths: the paper's linear model, and one with a square."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memarena.latency.results import Coefficients, Fit, HeldOutRange, Model, Sample
from memarena.scoring.timing import LEAST_N

FOLDS = 5
RANGES = 3
"""Number of parts of equal width of the range of prompt lengths, to see where a fit does not hold."""
LEAST_SAMPLES = 11
"""Fewer give no median that is known with 99% confidence, so no fit either."""

Array = NDArray[np.float64]


def fit_reader(reader: str, samples: Sequence[Sample]) -> Fit | None:
    """All four models of a reader from samples of phase 1; None with too few, or all of one length.

    ``llm``: the whole model call on prompt and answer tokens, T = α + β·N_p + γ·N_c; ``ttft``: its first token on
    prompt tokens alone. The square is in N_p: attention makes prefill grow faster than the prompt.
    """
    usable = [s for s in samples if s.reader == reader and s.llm_ms is not None and s.ttft_ms is not None]
    prompts = {s.prompt_tokens for s in usable}
    if len(usable) < LEAST_SAMPLES or len(prompts) < 3:
        return None
    answers = [s.completion_tokens for s in usable]
    llm = [(s, s.llm_ms) for s in usable if s.llm_ms is not None]
    ttft = [(s, s.ttft_ms) for s in usable if s.ttft_ms is not None]
    return Fit(
        reader=reader,
        n=len(usable),
        cells=tuple(sorted({s.cell_id for s in usable})),
        prompt_tokens=(min(prompts), max(prompts)),
        completion_tokens=(min(answers), max(answers)),
        llm=_model(llm, answers=True, square=False),
        llm_quadratic=_model(llm, answers=True, square=True),
        ttft=_model(ttft, answers=False, square=False),
        ttft_quadratic=_model(ttft, answers=False, square=True),
    )


def predict(coefficients: Coefficients, prompt_tokens: float, completion_tokens: float) -> float:
    """Milliseconds that a model gives for a call."""
    return (
        coefficients.alpha_ms
        + coefficients.beta_ms * prompt_tokens
        + (coefficients.gamma_ms or 0.0) * completion_tokens
        + (coefficients.delta_ms or 0.0) * prompt_tokens**2
    )


def _model(samples: Sequence[tuple[Sample, float]], *, answers: bool, square: bool) -> Model:
    """One model over all samples, and its error for held-out questions."""
    design = _design([s for s, _ in samples], answers=answers, square=square)
    times = np.array([ms for _, ms in samples])
    solution = _solve(design, times)
    residuals = times - design @ solution
    spread = float(((times - times.mean()) ** 2).sum())
    errors = _held_out(design, times, [_fold(s.instance_id) for s, _ in samples])
    held_out = errors[~np.isnan(errors)]
    known = len(held_out) >= LEAST_SAMPLES
    return Model(
        coefficients=_named(solution, answers=answers, square=square),
        r_squared=1 - float((residuals**2).sum()) / spread if spread > 0 else None,
        residual_p50_ms=float(np.percentile(np.abs(residuals), 50)),
        residual_p95_ms=float(np.percentile(np.abs(residuals), 95)),
        held_out_error_p50=float(np.percentile(held_out, 50)) if known else None,
        held_out_error_p95=float(np.percentile(held_out, 95)) if known else None,
        held_out_by_length=_by_length([s.prompt_tokens for s, _ in samples], errors),
    )


def _design(samples: Sequence[Sample], *, answers: bool, square: bool) -> Array:
    """Columns (n, k): 1, N_p, then N_c and N_p² as asked for."""
    prompts = np.array([float(s.prompt_tokens) for s in samples])
    columns = [np.ones_like(prompts), prompts]
    if answers:
        columns.append(np.array([float(s.completion_tokens) for s in samples]))
    if square:
        columns.append(prompts**2)
    return np.column_stack(columns)


def _solve(design: Array, times: Array) -> Array:
    """Ordinary least squares, each column scaled to 1 at most so that squares of thousands do no harm."""
    scale = np.abs(design).max(axis=0)
    scale[scale == 0] = 1.0
    solution, *_ = np.linalg.lstsq(design / scale, times, rcond=None)
    return np.asarray(solution / scale, dtype=np.float64)


def _fold(instance_id: str) -> int:
    """Which part a question belongs to; the same question asked of several backends is held out together."""
    return hashlib.sha256(instance_id.encode()).digest()[0] % FOLDS


def _held_out(design: Array, times: Array, folds: Sequence[int]) -> Array:
    """Relative errors (n,) of predictions for held-out questions; NaN where none was possible."""
    which = np.array(folds)
    errors = np.full(len(times), np.nan)
    for fold in range(FOLDS):
        out = which == fold
        if not out.any() or (~out).sum() <= design.shape[1]:
            continue
        predicted = design[out] @ _solve(design[~out], times[~out])
        errors[out] = np.abs(predicted - times[out]) / times[out]
    return errors


def _by_length(prompts: Sequence[int], errors: Array) -> tuple[HeldOutRange, ...]:
    """Held-out errors by length of prompt, in parts of equal width of the range that was observed."""
    lengths = np.array(prompts)
    low, high = min(prompts), max(prompts)
    starts = [low + (high - low + 1) * part // RANGES for part in range(RANGES)]
    parts = []
    for start, end in zip(starts, [*(start - 1 for start in starts[1:]), high], strict=True):
        inside = errors[(lengths >= start) & (lengths <= end) & ~np.isnan(errors)]
        parts.append(
            HeldOutRange(
                low=start,
                high=end,
                n=len(inside),
                error_p50=float(np.percentile(inside, 50)) if len(inside) >= LEAST_N[50] else None,
                error_p95=float(np.percentile(inside, 95)) if len(inside) >= LEAST_N[95] else None,
            )
        )
    return tuple(parts)


def _named(solution: Array, *, answers: bool, square: bool) -> Coefficients:
    values = [float(value) for value in solution]
    return Coefficients(
        alpha_ms=values[0],
        beta_ms=values[1],
        gamma_ms=values[2] if answers else None,
        delta_ms=values[-1] if square else None,
    )
