"""Computes the record of a phase from its samples: energy of every rail, CPU time, mean and peak of every channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memarena.log.measuring import (
    ChannelMeasured,
    MeterChannel,
    MeterFigure,
    PhaseEnded,
    PhaseMeasured,
    RailMeasured,
)
from memarena.meters.energy import FIGURES, IdleWindows, Phase, counter_growth, energy_name, phase_energy
from memarena.meters.integrals import Window, fault, integral
from memarena.meters.procfs import CPU_BUSY
from memarena.meters.readings import Channel, Unavailable
from memarena.meters.samples import Samples, Series

_COUNTER_UNITS = frozenset({"J", "s"})
"""Units of channels that only grow: of such a counter, neither mean nor peak says anything."""


def channels_of(samples: Samples) -> tuple[MeterChannel, ...]:
    """Return every channel of a samples file; channels that the machine does not have, with the reason."""
    channels = [MeterChannel(name=c.name, unit=c.unit) for c in samples.channels]
    absent = [
        MeterChannel(name=entry.channel.name, unit=entry.channel.unit, reason=entry.reason)
        for entry in samples.unavailable
    ]
    return (*channels, *absent)


def windows(pieces: Sequence[tuple[int, int]]) -> tuple[Window, ...]:
    """Return spans of CLOCK_MONOTONIC in ns as windows, without empty ones."""
    return tuple(Window(start, end) for start, end in pieces if end > start)


def measure_phase(
    samples: Samples, phase: PhaseEnded, *, system_channel: str, idle: IdleWindows | None = None
) -> PhaseMeasured | None:
    """Return the figures of a phase from its samples; None if the phase took no time.

    ``idle``: the node's idle windows, which are used only if the phase is between them.
    """
    spans = windows(phase.pieces)
    if not spans:
        return None
    whole = Phase(spans)
    if idle is not None and (idle.before.end_ns > whole.start_ns or idle.after.start_ns < whole.end_ns):
        idle = None
    energy = phase_energy(samples, spans, idle=idle, queries=phase.queries or None, system_channel=system_channel)
    return PhaseMeasured(
        phase=phase.phase,
        cell_id=phase.cell_id,
        samples_file=phase.samples_file,
        start_mono_ns=whole.start_ns,
        duration_s=whole.duration_s,
        pieces=len(spans),
        queries=phase.queries,
        rails=(energy.gpu_rail, energy.system, *energy.others),
        cpu_s=_cpu_s(samples, whole),
        channels=tuple(_channel(samples, c, whole) for c in samples.channels if c.unit not in _COUNTER_UNITS),
        load=phase.load,
    )


def unmetered_phase(phase: PhaseEnded, reason: str, *, system_channel: str) -> PhaseMeasured | None:
    """Return the record of a phase without samples, with the reason; None if the phase took no time."""
    spans = windows(phase.pieces)
    if not spans:
        return None
    names = (energy_name("gpu_power", system_channel), energy_name(system_channel, system_channel))
    nothing = dict.fromkeys(FIGURES, MeterFigure.unavailable(reason))
    return PhaseMeasured(
        phase=phase.phase,
        cell_id=phase.cell_id,
        samples_file=phase.samples_file,
        start_mono_ns=spans[0].start_ns,
        duration_s=sum(span.duration_s for span in spans),
        pieces=len(spans),
        queries=phase.queries,
        rails=tuple(RailMeasured(name=name, **nothing) for name in names),
        cpu_s=MeterFigure.unavailable(reason),
        load=phase.load,
    )


def _cpu_s(samples: Samples, phase: Phase) -> MeterFigure:
    series = samples.series(CPU_BUSY.name)
    if isinstance(series, Unavailable):
        return MeterFigure.unavailable(series.reason)
    if reason := phase.scattered():
        return MeterFigure.void(reason)
    return counter_growth(series, phase, samples.period_ns)


def _channel(samples: Samples, channel: Channel, phase: Phase) -> ChannelMeasured:
    """Return the mean over time and the highest sample. Unlike for energy, short pieces do not void them."""
    series = samples.series(channel.name)
    if isinstance(series, Unavailable):
        mean = peak = MeterFigure.unavailable(series.reason)
    else:
        mean, peak = _mean_and_peak(series, phase, samples.period_ns)
    return ChannelMeasured(channel=channel.name, unit=channel.unit, mean=mean, peak=peak)


def _mean_and_peak(series: Series, phase: Phase, period_ns: int) -> tuple[MeterFigure, MeterFigure]:
    area, highest = 0.0, -np.inf
    for piece in phase.pieces:
        if reason := fault(series, piece, period_ns):
            return MeterFigure.void(reason), MeterFigure.void(reason)
        area += integral(series.times_ns, series.values, piece)
        inside = (series.times_ns >= piece.start_ns) & (series.times_ns <= piece.end_ns)
        highest = max(highest, float(series.values[inside].max(initial=-np.inf)))
    mean = MeterFigure.measured(area / phase.duration_s, series.channel.unit)
    if not np.isfinite(highest):
        return mean, MeterFigure.void(f"{series.channel.name}: no sample falls into the phase, it is too short")
    return mean, MeterFigure.measured(highest, series.channel.unit)
