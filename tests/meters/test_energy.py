"""Tests phase energy: joules of known signals, and every rule by which a figure is void."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from memarena.log.measuring import MeterFigure
from memarena.meters.energy import IdleWindows, energy_name, phase_energy
from memarena.meters.integrals import Window
from memarena.meters.readings import Channel, MeterError, Unavailable

from .conftest import ORIGIN_NS, Recorded


def window(start_s: float, end_s: float) -> Window:
    return Window(ORIGIN_NS + round(start_s * 1e9), ORIGIN_NS + round(end_s * 1e9))


def value(figure: MeterFigure) -> float:
    assert figure.value is not None, figure
    return figure.value


def reason(figure: MeterFigure) -> str:
    assert figure.status != "value", figure
    return figure.reason


def square(low: float, high: float, half_s: float) -> Callable[[float], float]:
    return lambda t: high if math.floor(t / half_s) % 2 == 0 else low


SIGNALS: dict[str, tuple[Callable[[float], float], float]] = {
    # name: signal in W, its integral over 0 to 120.05 s in J
    "constant": (lambda _t: 25.0, 25.0 * 120.05),
    "ramp": (lambda t: 5 + t, 5 * 120.05 + 120.05**2 / 2),
    "square": (square(5, 65, 4.0), 35 * 120 + 65 * 0.05),
}
JITTER_MS = [random.Random(3).uniform(0, 40) for _ in range(997)]
PLANS: dict[str, tuple[list[int], list[float]]] = {
    # name: ticks left out, lateness of each read in ms
    "as scheduled": ([], [0.0]),
    "with jitter": ([], JITTER_MS),
    "with gaps": ([110, 111, 407, 905, 906], [0.0]),
    "with gaps and jitter": ([110, 407, 905, 1101], JITTER_MS),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("plan", PLANS)
def test_a_known_signal_is_integrated_within_half_a_percent(recorded: Recorded, signal: str, plan: str) -> None:
    """The window's edges lie on samples and between them."""
    function, joules = SIGNALS[signal]
    left_out, late_ms = PLANS[plan]
    samples = recorded(function, 122, left_out=left_out, late_ms=late_ms)
    gpu = phase_energy(samples, window(0, 120.05)).gpu_rail
    assert value(gpu.gross_j) == pytest.approx(joules, rel=0.005)
    assert value(gpu.mean_power_w) == pytest.approx(joules / 120.05, rel=0.005)


def test_a_ramp_is_integrated_exactly_between_samples(recorded: Recorded) -> None:
    """Edges are interpolated, not rounded to the next sample."""
    samples = recorded(lambda t: 5 + t, 70)
    gpu = phase_energy(samples, window(1.234, 61.777)).gpu_rail
    assert value(gpu.gross_j) == pytest.approx(5 * 60.543 + (61.777**2 - 1.234**2) / 2, rel=1e-9)


def test_a_gap_of_more_than_300_ms_voids_the_figure_with_a_reason(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 120, left_out=[200, 201, 202])
    gpu = phase_energy(samples, window(0, 120), queries=10).gpu_rail
    assert reason(gpu.gross_j) == "gpu_power: a gap of 400 ms at +19.9 s"
    assert reason(gpu.net_j) == reason(gpu.gross_j_per_query) == reason(gpu.mean_power_w) == reason(gpu.gross_j)


def test_a_gap_of_300_ms_is_allowed(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 120, left_out=[200, 201])
    assert value(phase_energy(samples, window(0, 120)).gpu_rail.gross_j) == pytest.approx(3000)


def test_a_gap_outside_the_phase_does_not_matter(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 120, left_out=range(5, 40))
    assert value(phase_energy(samples, window(10, 100)).gpu_rail.gross_j) == pytest.approx(2250)
    assert "a gap of" in reason(phase_energy(samples, window(3.95, 100)).gpu_rail.gross_j)


@pytest.mark.parametrize(("missing", "void"), [(12, False), (13, True)])
def test_more_than_one_percent_of_missing_samples_voids_the_figure(
    recorded: Recorded, missing: int, void: bool
) -> None:
    samples = recorded(lambda _t: 25.0, 120, left_out=range(0, missing * 20, 20))
    gross = phase_energy(samples, window(-0.05, 119.95)).gpu_rail.gross_j
    if void:
        assert reason(gross) == "gpu_power: 13 of 1200 samples are missing"
    else:
        assert value(gross) == pytest.approx(3000)


def test_a_failed_reading_counts_as_missing_with_its_reason(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 120, unreadable=dict.fromkeys(range(50, 60), "NVML: Unknown Error"))
    gross = phase_energy(samples, window(0, 120)).gpu_rail.gross_j
    assert reason(gross) == "gpu_power: a gap of 1100 ms at +4.9 s: NVML: Unknown Error"


def test_a_meter_that_fails_voids_the_current_phase_and_not_the_previous_one(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 300, fails_at_s=200)
    assert value(phase_energy(samples, window(0, 100)).gpu_rail.gross_j) == pytest.approx(2500)
    gpu = phase_energy(samples, window(150, 250)).gpu_rail
    assert reason(gpu.gross_j) == "gpu_power: the meter failed at +50.0 s of the phase: GPU is lost"
    # A failure within the last 300 ms leaves no gap that could be detected.
    assert "GPU is lost" in reason(phase_energy(samples, window(100, 200.05)).gpu_rail.gross_j)


def test_a_phase_that_the_samples_do_not_span_is_void(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 100)
    starts_too_early = phase_energy(samples, window(-1.2, 90)).gpu_rail.gross_j
    assert reason(starts_too_early) == "gpu_power: no sample before the phase began"
    after = phase_energy(samples, window(0, 101)).gpu_rail.gross_j
    assert reason(after) == "gpu_power: no sample after the phase ended"


@pytest.mark.parametrize(("seconds", "void"), [(59.9, True), (60.0, False)])
def test_no_joules_per_query_below_a_minute(recorded: Recorded, seconds: float, void: bool) -> None:
    gpu = phase_energy(recorded(lambda _t: 25.0, 100), window(0, seconds), queries=10).gpu_rail
    assert value(gpu.gross_j) == pytest.approx(25 * seconds)
    if void:
        assert "the phase is 59.9 s long, less than 60 s" in reason(gpu.gross_j_per_query)
    else:
        assert value(gpu.gross_j_per_query) == pytest.approx(150)


def test_net_is_gross_minus_the_idle_nodes_energy(recorded: Recorded) -> None:
    samples = recorded(lambda t: 25.0 if 120 <= t < 220 else 5.0, 340)
    idle = IdleWindows(window(0, 119.9), window(220.1, 340.1))
    gpu = phase_energy(samples, window(120, 219.9), idle=idle, queries=4).gpu_rail
    assert "the idle window before the phase is 119.9 s long, less than 120 s" in reason(gpu.net_j)
    assert value(gpu.gross_j_per_query) == pytest.approx(25 * 99.9 / 4)
    idle = IdleWindows(window(-0.2, 119.8), window(220.1, 340.1))
    gpu = phase_energy(samples, window(120, 219.9), idle=idle, queries=4).gpu_rail
    assert value(gpu.idle_w) == pytest.approx(5)
    assert value(gpu.idle_j) == pytest.approx(5 * 99.9)
    assert value(gpu.net_j) == pytest.approx(20 * 99.9)
    assert value(gpu.net_j_per_query) == pytest.approx(20 * 99.9 / 4)


def test_a_void_idle_window_voids_net_and_leaves_gross(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 340, left_out=range(50, 60))
    idle = IdleWindows(window(0, 120), window(220, 340))
    gpu = phase_energy(samples, window(120, 220), idle=idle).gpu_rail
    assert value(gpu.gross_j) == pytest.approx(2500)
    assert reason(gpu.net_j) == "the idle window before the phase: gpu_power: a gap of 1100 ms at +4.9 s"
    assert reason(phase_energy(samples, window(120, 220)).gpu_rail.net_j) == "no idle windows were measured"


@pytest.mark.parametrize(("factor", "void"), [(1.025, False), (0.975, False), (1.035, True), (0.965, True)])
def test_the_energy_counter_must_agree_within_three_percent(recorded: Recorded, factor: float, void: bool) -> None:
    samples = recorded(lambda _t: 25.0, 120, counter=lambda t: 1e6 + 25.0 * t / factor)
    gpu = phase_energy(samples, window(0, 100)).gpu_rail
    assert value(gpu.counter_difference_percent) == pytest.approx((factor - 1) * 100)
    if void:
        assert "the integral and the device's energy counter differ by" in reason(gpu.gross_j)
    else:
        assert value(gpu.gross_j) == pytest.approx(2500)


@pytest.mark.parametrize(
    ("counter", "message"),
    [(lambda t: 25.0 * (t % 50), "went backwards"), (lambda _t: 7.0, "did not move")],
)
def test_a_counter_that_does_not_count_is_no_check(
    recorded: Recorded, counter: Callable[[float], float], message: str
) -> None:
    gpu = phase_energy(recorded(lambda _t: 25.0, 120, counter=counter), window(0, 100)).gpu_rail
    assert message in reason(gpu.counter_difference_percent)
    assert value(gpu.gross_j) == pytest.approx(2500)


def test_an_unmeasured_figure_is_unavailable_and_not_zero(recorded: Recorded) -> None:
    missing = Unavailable(Channel("gpu_power", "W"), "NVML, GPU 0: NVML Shared Library Not Found")
    samples = recorded(lambda t: t, 100, channel=Channel("memory_used", "B"), unavailable=[missing])
    energy = phase_energy(samples, window(0, 90), queries=3)
    gpu = energy.gpu_rail
    assert gpu.gross_j == gpu.net_j == gpu.gross_j_per_query == MeterFigure.unavailable(missing.reason)
    assert reason(energy.system.gross_j) == "no rail and no wall meter gives the whole machine's power"
    assert energy.others == ()


def test_figures_are_named_after_the_rail_that_was_measured(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 100, channel=Channel("ina3221.VDD_IN.power", "W"))
    energy = phase_energy(samples, window(0, 90))
    assert (energy.gpu_rail.name, energy.system.name) == ("gpu_rail_j", "sys_j")
    assert [rail.name for rail in energy.others] == ["ina3221.VDD_IN.rail_j"]
    assert energy.system.gross_j.status == "unavailable"
    declared = phase_energy(samples, window(0, 90), system_channel="ina3221.VDD_IN.power")
    assert value(declared.system.gross_j) == pytest.approx(2250)
    assert declared.system.name == "sys_j"
    assert declared.others == ()
    assert energy_name("gpu_power", system_channel="gpu_power") == "gpu_rail_j"


def test_invalid_settings_are_refused(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 25.0, 100)
    with pytest.raises(MeterError, match="0 queries"):
        phase_energy(samples, window(0, 90), queries=0)
    with pytest.raises(MeterError, match="idle windows must lie before and after"):
        phase_energy(samples, window(0, 90), idle=IdleWindows(window(-1, 10), window(91, 92)))
    with pytest.raises(MeterError, match="is empty"):
        window(5, 5)
