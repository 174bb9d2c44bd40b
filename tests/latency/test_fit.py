"""Tests fits of a reader's times: known coefficients are recovered, errors are held-out, small samples give no fit."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.latency.fit import LEAST_SAMPLES, _fold, fit_reader, predict
from memarena.latency.results import Coefficients, Sample


def sample(number: int, n_p: int, n_c: int, llm_ms: float, ttft_ms: float, **more: object) -> Sample:
    return Sample(
        run="run",
        cell_id="oracle@r/s1",
        reader="r",
        backend="oracle",
        instance_id=f"q{number}",
        prompt_tokens=n_p,
        completion_tokens=n_c,
        cached_tokens=0,
        ttft_ms=ttft_ms,
        llm_ms=llm_ms,
        search_ms=1.0,
        rest_ms=1.0,
        server_prompt_ms=None,
    ).model_copy(update=more)


def drawn(ttft: Callable[[int], float], gamma: float, count: int = 90, noise: float = 0.0) -> list[Sample]:
    rng = random.Random(5)
    samples = []
    for number in range(count):
        n_p, n_c = rng.randrange(100, 4000), rng.randrange(1, 60)
        first = ttft(n_p) * (1 + noise * rng.uniform(-1, 1))
        samples.append(sample(number, n_p, n_c, first + gamma * n_c, first))
    return samples


@given(
    alpha=st.floats(-50, 500),
    beta=st.floats(0.05, 5),
    gamma=st.floats(0.5, 100),
)
def test_the_coefficients_of_a_linear_reader_are_recovered(alpha: float, beta: float, gamma: float) -> None:
    fit = fit_reader("r", drawn(lambda n: 60 + alpha + beta * n, gamma))
    assert fit is not None
    coefficients = fit.llm.coefficients
    assert (coefficients.alpha_ms, coefficients.beta_ms, coefficients.gamma_ms) == pytest.approx(
        (60 + alpha, beta, gamma), rel=1e-6, abs=1e-6
    )
    assert fit.ttft.coefficients.alpha_ms == pytest.approx(60 + alpha, rel=1e-6, abs=1e-6)
    assert fit.ttft.coefficients.gamma_ms is None
    assert fit.llm.r_squared == pytest.approx(1)
    assert fit.llm.held_out_error_p95 == pytest.approx(0, abs=1e-6)
    assert fit.llm.residual_p95_ms == pytest.approx(0, abs=1e-3)


def test_a_quadratic_term_fits_a_reader_with_quadratic_prefill_better() -> None:
    fit = fit_reader("r", drawn(lambda n: 20 + 1.0 * n + 4e-4 * n * n, 10))
    assert fit is not None
    assert fit.ttft_quadratic.coefficients.delta_ms == pytest.approx(4e-4)
    assert fit.llm_quadratic.coefficients.delta_ms == pytest.approx(4e-4)
    assert fit.ttft.held_out_error_p50 is not None
    assert fit.ttft.held_out_error_p50 > 0.02
    assert fit.best("ttft") is fit.ttft_quadratic
    assert fit.best("llm") is fit.llm_quadratic


def test_held_out_errors_show_what_residuals_hide() -> None:
    """Times do not depend on the prompt here: the error on unseen questions is as large as their spread."""
    rng = random.Random(1)
    samples = [sample(n, rng.randrange(100, 4000), 5, t := rng.uniform(100, 1000), t) for n in range(90)]
    fit = fit_reader("r", samples)
    assert fit is not None
    assert fit.ttft.held_out_error_p50 is not None
    assert fit.ttft.held_out_error_p50 > 0.2
    assert (fit.ttft.r_squared or 0) < 0.2


def test_the_held_out_error_is_that_of_lines_fitted_without_the_question() -> None:
    """Recomputed fold by fold with another solver."""
    rng = random.Random(4)
    samples = [sample(n, p := rng.randrange(100, 900), 5, t := 50 + p * rng.uniform(0.5, 2), t) for n in range(24)]
    errors = []
    for fold in range(5):
        training = [s for s in samples if _fold(s.instance_id) != fold]
        slope, start = np.polyfit([s.prompt_tokens for s in training], [s.ttft_ms or 0 for s in training], 1)
        for s in samples:
            if _fold(s.instance_id) == fold:
                errors.append(abs(start + slope * s.prompt_tokens - (s.ttft_ms or 0)) / (s.ttft_ms or 0))
    fit = fit_reader("r", samples)
    assert fit is not None
    assert fit.ttft.held_out_error_p50 == pytest.approx(np.percentile(errors, 50))
    assert fit.ttft.held_out_error_p95 == pytest.approx(np.percentile(errors, 95))


def test_the_same_question_of_several_backends_is_held_out_together() -> None:
    """Otherwise the fit could know a held-out question from another cell."""
    assert len({_fold(f"q{n}") for n in range(50)}) == 5
    assert _fold("q7") == _fold("q7")


@pytest.mark.parametrize("count", [0, LEAST_SAMPLES - 1])
def test_too_few_samples_give_no_fit(count: int) -> None:
    assert fit_reader("r", drawn(lambda n: 10 + n, 1, count)) is None


def test_prompts_of_one_length_give_no_fit() -> None:
    assert fit_reader("r", [sample(n, 500, n, 100 + n, 90) for n in range(50)]) is None


def test_samples_without_a_time_or_of_another_reader_do_not_count() -> None:
    good = drawn(lambda n: 10 + n, 1, 40)
    bad = [s.model_copy(update={"llm_ms": None}) for s in good[:5]] + [
        s.model_copy(update={"reader": "other", "llm_ms": 9e9}) for s in good
    ]
    fit = fit_reader("r", [*good[5:], *bad])
    assert fit is not None
    assert fit.n == 35
    assert fit.ttft.coefficients.beta_ms == pytest.approx(1)


def test_the_range_of_a_fit_is_that_of_its_prompts() -> None:
    samples = drawn(lambda n: 10 + n, 1, 40)
    fit = fit_reader("r", samples)
    assert fit is not None
    assert fit.prompt_tokens == (min(s.prompt_tokens for s in samples), max(s.prompt_tokens for s in samples))


def test_a_prediction_adds_all_terms() -> None:
    assert predict(Coefficients(alpha_ms=1, beta_ms=2, gamma_ms=3, delta_ms=4), 10, 100) == 1 + 20 + 300 + 400


def test_held_out_errors_by_prompt_length_show_a_fit_that_fails_for_long_prompts() -> None:
    """Prompts above 2,700 tokens take up to twice their time, which only the median of the last third shows."""
    rng = random.Random(9)
    samples = []
    for number in range(150):
        n_p = 100 + 26 * number
        first = (50.0 + n_p) * (1 + (rng.random() if n_p >= 2700 else 0))
        samples.append(sample(number, n_p, 10, first + 30, first))
    fit = fit_reader("r", samples)
    assert fit is not None
    parts = fit.ttft.held_out_by_length
    assert [(p.low, p.high) for p in parts] == [(100, 1390), (1391, 2682), (2683, 3974)]
    assert [p.n for p in parts] == [50, 50, 50]
    errors = [p.error_p50 or 0.0 for p in parts]
    assert errors[2] > 0.1
    assert all(p.error_p95 is None for p in parts), "p95 needs 130"


def test_a_part_of_the_range_with_few_prompts_has_no_median() -> None:
    lengths = [*range(100, 110), *range(1000, 1040)]
    fit = fit_reader("r", [sample(k, n, 5, 10.0 + n, 5.0 + n) for k, n in enumerate(lengths)])
    assert fit is not None
    short, middle, long = fit.llm.held_out_by_length
    assert (short.n, short.error_p50) == (10, None)
    assert (middle.n, middle.error_p50) == (0, None)
    assert long.n == 40
    assert long.error_p50 == pytest.approx(0, abs=1e-6)
