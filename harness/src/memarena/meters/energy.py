"""Computes the energy of a phase: gross, idle, net, and per query; each a value, void with a reason, or unavailable.

A figure is named after the measured rail: ``gpu_rail_j`` is the GPU's rail alone, ``sys_j`` exists only if a rail or a
meter at the wall covers the whole machine. Gross is the integral of power, idle what the machine at rest takes in the
same time, net the difference. The limits below decide when a figure is void: a wrong figure is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from memarena.log.measuring import MeterFigure, RailMeasured
from memarena.meters.integrals import Window, at, fault, integral
from memarena.meters.readings import Channel, MeterError, Unavailable
from memarena.meters.samples import Samples, Series

MIN_PHASE_S = 60.0
"""Shorter phases have no joules per query, and are not compared with the device's counter: power is an average."""
MIN_PIECE_S = 10.0
"""Shorter pieces of a phase would include power of the time between them, since power is an average over 1 s."""
IDLE_S = 120.0
"""Minimum length of each idle window, from which the power at rest is computed."""
COUNTER_TOLERANCE_PERCENT = 3.0
"""Largest difference between the integral of power and the device's energy counter for which the integral counts."""

FIGURES = tuple(name for name in RailMeasured.model_fields if name != "name")
"""The figures of a rail."""
# Names of channels.
GPU_POWER, GPU_COUNTER, SYSTEM_POWER = "gpu_power", "gpu_energy", "sys_power"


@dataclass(frozen=True)
class Phase:
    """A phase in one or, if it alternates with another phase, several pieces; in order, without overlap."""

    pieces: tuple[Window, ...]

    def __post_init__(self) -> None:
        """Raise :class:`~memarena.meters.readings.MeterError` if there is no piece, or pieces are out of order."""
        if not self.pieces:
            raise MeterError("a phase without a piece")
        if any(after.start_ns < before.end_ns for before, after in pairwise(self.pieces)):
            raise MeterError("the pieces of a phase overlap or are not in order")

    @property
    def start_ns(self) -> int:
        """Start of the first piece, in ns of CLOCK_MONOTONIC."""
        return self.pieces[0].start_ns

    @property
    def end_ns(self) -> int:
        """End of the last piece, in ns of CLOCK_MONOTONIC."""
        return self.pieces[-1].end_ns

    @property
    def duration_s(self) -> float:
        """Length of all pieces together, in seconds."""
        return sum(piece.duration_s for piece in self.pieces)

    def scattered(self) -> str | None:
        """Return the reason why it has no power figure, if its pieces are too short; else None."""
        mean_s = self.duration_s / len(self.pieces)
        if len(self.pieces) == 1 or mean_s >= MIN_PIECE_S:
            return None
        return (
            "Not measured: phase too short "
            f"({len(self.pieces)} of {mean_s:.1f} s on average, less than {MIN_PIECE_S:g} s)"
        )


@dataclass(frozen=True)
class IdleWindows:
    """The node at rest with its models loaded, before and after a phase; each at least ``IDLE_S`` long."""

    before: Window
    after: Window


@dataclass(frozen=True)
class PhaseEnergy:
    """The energy of a phase by channel; ``others`` are neither the GPU's nor the whole machine's."""

    gpu_rail: RailMeasured
    system: RailMeasured
    others: tuple[RailMeasured, ...]


def energy_name(channel: str, system_channel: str = SYSTEM_POWER) -> str:
    """Return the name under which the energy of a power channel is published."""
    if channel == GPU_POWER:
        return "gpu_rail_j"
    return "sys_j" if channel == system_channel else f"{channel.removesuffix('power')}rail_j"


def phase_energy(
    samples: Samples,
    phase: Window | Sequence[Window],
    *,
    idle: IdleWindows | None = None,
    queries: int | None = None,
    system_channel: str = SYSTEM_POWER,
) -> PhaseEnergy:
    """Return the energy of ``phase`` on every rail.

    Several windows are the pieces of one phase. ``queries`` is the number of questions in the phase, None for a phase
    without questions; ``system_channel`` is the rail that feeds the whole machine, if this node has one. Raises
    :class:`~memarena.meters.readings.MeterError` for idle windows that overlap the phase and for a number of queries
    that is not positive.
    """
    if queries is not None and queries < 1:
        raise MeterError(f"{queries} queries: expected at least 1, or none to be told")
    whole = Phase((phase,) if isinstance(phase, Window) else tuple(phase))
    if idle is not None and (idle.before.end_ns > whole.start_ns or idle.after.start_ns < whole.end_ns):
        raise MeterError("the idle windows must lie before and after the phase")

    def rail(channel: str) -> RailMeasured:
        return _rail(samples, channel, whole, idle, queries, energy_name(channel, system_channel))

    own_channels = {GPU_POWER, system_channel}
    other_channels = [c.name for c in samples.channels if c.unit == "W" and c.name not in own_channels]
    return PhaseEnergy(rail(GPU_POWER), rail(system_channel), tuple(rail(name) for name in other_channels))


def _rail(
    samples: Samples, channel: str, phase: Phase, idle: IdleWindows | None, queries: int | None, name: str
) -> RailMeasured:
    """Return the energy figures of a rail, published under ``name``."""
    series = samples.series(channel)
    if isinstance(series, Unavailable):
        if channel not in {c.channel.name for c in samples.unavailable} and name == "sys_j":
            series = Unavailable(Channel(channel, "W"), "no rail and no wall meter gives the whole machine's power")
        return RailMeasured(name=name, **dict.fromkeys(FIGURES, MeterFigure.unavailable(series.reason)))
    gross = _phase_joules(series, phase, samples.period_ns)
    counter = _counter_difference(samples, channel, phase, gross)
    if counter.value is not None and abs(counter.value) > COUNTER_TOLERANCE_PERCENT:
        gross = MeterFigure.void(
            f"{channel}: the integral and the device's energy counter differ by {counter.value:+.1f}%, "
            f"more than {COUNTER_TOLERANCE_PERCENT:g}%"
        )
    idle_w = _idle_w(series, idle, samples.period_ns)
    idle_j = _combined(lambda w: w * phase.duration_s, "J", idle_w)
    net = _combined(lambda all_of_it, rest: all_of_it - rest, "J", gross, idle_j)
    return RailMeasured(
        name=name,
        gross_j=gross,
        mean_power_w=_combined(lambda joules: joules / phase.duration_s, "W", gross),
        counter_difference_percent=counter,
        idle_w=idle_w,
        idle_j=idle_j,
        net_j=net,
        gross_j_per_query=_per_query(gross, phase, queries),
        net_j_per_query=_per_query(net, phase, queries),
    )


def _phase_joules(series: Series, phase: Phase, period_ns: int) -> MeterFigure:
    if reason := phase.scattered():
        return MeterFigure.void(reason)
    joules = 0.0
    for piece in phase.pieces:
        part = _joules(series, piece, period_ns)
        if part.value is None:
            return part
        joules += part.value
    return MeterFigure.measured(joules, "J")


def _joules(series: Series, window: Window, period_ns: int) -> MeterFigure:
    if reason := fault(series, window, period_ns):
        return MeterFigure.void(reason)
    return MeterFigure.measured(integral(series.times_ns, series.values, window), "J")


def _counter_difference(samples: Samples, channel: str, phase: Phase, gross: MeterFigure) -> MeterFigure:
    counter = samples.series(GPU_COUNTER)
    if channel != GPU_POWER:
        return MeterFigure.unavailable(f"{channel} has no energy counter")
    if isinstance(counter, Unavailable):
        return MeterFigure.unavailable(counter.reason)
    if gross.value is None:
        return gross
    if phase.duration_s < MIN_PHASE_S:
        return MeterFigure.void(_short(phase, "power is averaged over about a second, so the two need not agree"))
    counted = counter_growth(counter, phase, samples.period_ns)
    return _combined(lambda integrated, joules: (integrated / joules - 1) * 100, "%", gross, counted)


def counter_growth(counter: Series, phase: Phase, period_ns: int) -> MeterFigure:
    """Return the growth of a counter over the pieces of a phase, in the counter's unit."""
    growth = 0.0
    for piece in phase.pieces:
        part = _counted(counter, piece, period_ns)
        if part.value is None:
            return part
        growth += part.value
    return MeterFigure.measured(growth, counter.channel.unit)


def _counted(counter: Series, phase: Window, period_ns: int) -> MeterFigure:
    if reason := fault(counter, phase, period_ns):
        return MeterFigure.void(reason)
    inside = (counter.times_ns >= phase.start_ns) & (counter.times_ns <= phase.end_ns)
    if np.any(np.diff(counter.values[inside]) < 0):
        return MeterFigure.void(f"{counter.channel.name}: the counter went backwards during the phase")
    start, end = (at(counter.times_ns, counter.values, edge) for edge in (phase.start_ns, phase.end_ns))
    if end <= start:
        return MeterFigure.void(f"{counter.channel.name}: the counter did not move during the phase")
    return MeterFigure.measured(end - start, counter.channel.unit)


def _idle_w(series: Series, idle: IdleWindows | None, period_ns: int) -> MeterFigure:
    """Return the mean power of both idle windows in W; void if one is missing, too short or has no figure."""
    if idle is None:
        return MeterFigure.void("no idle windows were measured")
    spent = 0.0
    for side, window in (("before", idle.before), ("after", idle.after)):
        if window.duration_s < IDLE_S:
            return MeterFigure.void(
                f"the idle window {side} the phase is {window.duration_s:.1f} s long, less than {IDLE_S:g} s"
            )
        joules = _joules(series, window, period_ns)
        if joules.value is None:
            return MeterFigure.void(f"the idle window {side} the phase: {joules.reason}")
        spent += joules.value
    return MeterFigure.measured(spent / (idle.before.duration_s + idle.after.duration_s), "W")


def _per_query(joules: MeterFigure, phase: Phase, queries: int | None) -> MeterFigure:
    if queries is None:
        return MeterFigure.void("no queries were asked in this phase")
    if phase.duration_s < MIN_PHASE_S:
        return MeterFigure.void(_short(phase, "too short for joules per query"))
    return _combined(lambda value: value / queries, "J", joules)


def _short(phase: Phase, why: str) -> str:
    return f"the phase is {phase.duration_s:.1f} s long, less than {MIN_PHASE_S:g} s: {why}"


def _combined(formula: Callable[..., float], unit: str, *figures: MeterFigure) -> MeterFigure:
    """Apply ``formula`` to the figures' values; return the first figure without a value if there is one."""
    values = []
    for figure in figures:
        if figure.value is None:
            return figure
        values.append(figure.value)
    return MeterFigure.measured(formula(*values), unit)
