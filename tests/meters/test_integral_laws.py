"""Tests properties of the integral: additive over phases, independent of the time of day, linear in the unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.meters.integrals import Window, integral
from memarena.meters.samples import Nanoseconds, Values

Signal = tuple[Nanoseconds, Values]


@st.composite
def signals(draw: st.DrawFn) -> Signal:
    steps = draw(st.lists(st.integers(1_000_000, 300_000_000), min_size=3, max_size=40))
    watts = draw(st.lists(st.floats(0.5, 500), min_size=len(steps), max_size=len(steps)))
    return np.cumsum(np.array([10**15, *steps[1:]], np.int64)), np.array(watts)


@st.composite
def cut_signals(draw: st.DrawFn) -> tuple[Signal, list[int]]:
    times, watts = draw(signals())
    inside = st.integers(int(times[0]), int(times[-1]))
    return (times, watts), sorted(draw(st.lists(inside, min_size=3, max_size=3, unique=True)))


@given(cut_signals())
def test_phases_add_up(case: tuple[Signal, list[int]]) -> None:
    (times, watts), (a, b, c) = case
    parts = integral(times, watts, Window(a, b)) + integral(times, watts, Window(b, c))
    assert parts == pytest.approx(integral(times, watts, Window(a, c)), rel=1e-9)


@given(cut_signals(), st.integers(-(10**14), 10**17))
def test_the_time_of_day_does_not_matter(case: tuple[Signal, list[int]], shift_ns: int) -> None:
    (times, watts), (a, b, _) = case
    moved = integral(times + shift_ns, watts, Window(a + shift_ns, b + shift_ns))
    assert moved == integral(times, watts, Window(a, b))


@given(cut_signals(), st.floats(1e-6, 1e6))
def test_the_unit_scales_the_result(case: tuple[Signal, list[int]], factor: float) -> None:
    (times, watts), (a, b, _) = case
    scaled = integral(times, watts * factor, Window(a, b))
    assert scaled == pytest.approx(integral(times, watts, Window(a, b)) * factor, rel=1e-9)


@given(cut_signals())
def test_the_mean_lies_between_minimum_and_maximum(case: tuple[Signal, list[int]]) -> None:
    (times, watts), (a, b, _) = case
    span = Window(a, b)
    mean = integral(times, watts, span) / span.duration_s
    assert watts.min() * (1 - 1e-9) <= mean <= watts.max() * (1 + 1e-9)


def squares_sum(times_s: Values, period_s: float, duty: float) -> Values:
    """Return the integral (J) from 0 of a square wave of 80 and 20 W."""
    periods, in_period_s = np.divmod(times_s, period_s)
    high_s = duty * period_s
    high = periods * high_s + np.minimum(in_period_s, high_s)
    joules: Values = 80 * high + 20 * (times_s - high)
    return joules


@given(st.integers(0, 2**32 - 1), st.floats(1, 20), st.floats(0.2, 0.8), st.floats(60, 200))
def test_a_square_wave_as_nvml_reports_it_is_integrated_within_half_a_percent(
    seed: int, period_s: float, duty: float, length_s: float
) -> None:
    """NVML reports a running mean over about a second. Reads are late at random, and some are missing."""
    draw = np.random.default_rng(seed)
    times_s = np.arange(0, length_s + 3, 0.1)
    times_s = np.sort(times_s + draw.uniform(0, 0.04, len(times_s)))[draw.random(len(times_s)) > 0.007]

    def told(at_s: Values) -> Values:
        return squares_sum(at_s, period_s, duty) - squares_sum(at_s - 1, period_s, duty)

    start_s, end_s = 1.5, 1.5 + length_s
    fine_s = np.linspace(start_s, end_s, 100_001)
    joules = float(np.trapezoid(told(fine_s), fine_s))
    window = Window(int(start_s * 1e9), int(end_s * 1e9))
    assert integral((times_s * 1e9).astype(np.int64), told(times_s), window) == pytest.approx(joules, rel=0.005)


@given(signals())
def test_samples_that_do_not_reach_an_edge_are_refused(signal: Signal) -> None:
    times, watts = signal
    for window in (Window(int(times[0]) - 1, int(times[1])), Window(int(times[0]), int(times[-1]) + 1)):
        with pytest.raises(ValueError, match="both edges"):
            integral(times, watts, window)
