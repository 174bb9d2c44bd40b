"""Fits a reader's times to lengths of prompt and answer: the paper's linear model, and one with a quadratic term."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memarena.latency.results import Coefficients, Fit, HeldOutRange, Model, Sample
from memarena.scoring.timing import LEAST_N

FOLDS = 5
"""Number of parts of the questions; each is predicted from a fit to the others."""
RANGES = 3
"""Number of equal parts of the range of prompt lengths, to show where a fit does not hold."""
LEAST_SAMPLES = 11
"""With fewer samples not even a median is known with 99% confidence, so there is no fit."""

Array = NDArray[np.float64]


def fit_reader(reader: str, samples: Sequence[Sample]) -> Fit | None:
    """Fit all four models of a reader to samples of phase 1; None with too few samples.

    Too few are fewer than LEAST_SAMPLES, or prompts of fewer than three lengths, which a square cannot be fitted to.

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
    """Return the predicted milliseconds of a call."""
    return (
        coefficients.alpha_ms
        + coefficients.beta_ms * prompt_tokens
        + (coefficients.gamma_ms or 0.0) * completion_tokens
        + (coefficients.delta_ms or 0.0) * prompt_tokens**2
    )


def _model(samples: Sequence[tuple[Sample, float]], *, answers: bool, square: bool) -> Model:
    """Fit one model to all samples, and compute its error for held-out questions."""
    design = _design([s for s, _ in samples], answers=answers, square=square)
    times = np.array([ms for _, ms in samples])
    solution = _solve(design, times)
    residuals = times - design @ solution
    spread = float(((times - times.mean()) ** 2).sum())
    errors = _held_out(design, times, [_fold(s.instance_id) for s, _ in samples])
    held_out = errors[~np.isnan(errors)]
    known = len(held_out) >= LEAST_SAMPLES  # below that, best() takes the linear model
    return Model(
        coefficients=_coefficients(solution, answers=answers, square=square),
        r_squared=1 - float((residuals**2).sum()) / spread if spread > 0 else None,
        residual_p50_ms=float(np.percentile(np.abs(residuals), 50)),
        residual_p95_ms=float(np.percentile(np.abs(residuals), 95)),
        held_out_error_p50=float(np.percentile(held_out, 50)) if known else None,
        held_out_error_p95=float(np.percentile(held_out, 95)) if known else None,
        held_out_by_length=_by_length([s.prompt_tokens for s, _ in samples], errors),
    )


def _design(samples: Sequence[Sample], *, answers: bool, square: bool) -> Array:
    """Return the design matrix (n, k), with the columns 1, N_p, then N_c (``answers``) and N_p² (``square``)."""
    prompts = np.array([float(s.prompt_tokens) for s in samples])
    columns = [np.ones_like(prompts), prompts]
    if answers:
        columns.append(np.array([float(s.completion_tokens) for s in samples]))
    if square:
        columns.append(prompts**2)
    return np.column_stack(columns)


def _solve(design: Array, times: Array) -> Array:
    """Solve ordinary least squares; columns are scaled to at most 1, since squares of thousands are ill-conditioned."""
    scale = np.abs(design).max(axis=0)
    scale[scale == 0] = 1.0
    solution, *_ = np.linalg.lstsq(design / scale, times, rcond=None)
    return np.asarray(solution / scale, dtype=np.float64)


def _fold(instance_id: str) -> int:
    """Return the fold of a question, which is the same for all backends, so that it is held out everywhere at once."""
    return hashlib.sha256(instance_id.encode()).digest()[0] % FOLDS


def _held_out(design: Array, times: Array, folds: Sequence[int]) -> Array:
    """Return the relative errors (n,) of predictions for held-out questions; NaN if a fold could not be fitted."""
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
    """Return held-out errors by prompt length, for parts of equal width of the observed range."""
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


def _coefficients(solution: Array, *, answers: bool, square: bool) -> Coefficients:
    values = [float(value) for value in solution]
    return Coefficients(
        alpha_ms=values[0],
        beta_ms=values[1],
        gamma_ms=values[2] if answers else None,
        delta_ms=values[-1] if square else None,
    )
