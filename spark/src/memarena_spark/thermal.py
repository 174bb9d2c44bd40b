"""Implements the thermal gate: waits until the machine's temperature is stable before anything is timed.

Preflight and the conformance suite warm the machine, and a processor's clock depends on its temperature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from memarena.log.base import Record

from memarena_spark.errors import Refusal
from memarena_spark.facts import Unknown
from memarena_spark.node import Node
from memarena_spark.profiles import Thermal
from memarena_spark.refusal_codes import refusal


class ThermalGate(Record):
    """The end of the wait for a stable temperature."""

    settled: bool  # words: a name of the file format
    waited_s: float
    slope_c_per_min: float | Unknown
    """The steepest slope of all sensors over the last window; :class:`Unknown` if no sensor can be read."""
    sensor: str
    """The sensor with that slope."""


def slope_c_per_min(times_s: Sequence[float], values_c: Sequence[float]) -> float:
    """Return the least-squares slope of readings in °C per minute; needs at least two different times."""
    times = np.asarray(times_s, np.float64) / 60
    offsets = times - times.mean()
    return float(offsets @ (np.asarray(values_c, np.float64) - np.mean(values_c)) / (offsets @ offsets))


def steepest(readings: Sequence[tuple[float, Mapping[str, float]]]) -> tuple[str, float]:
    """Return the sensor that changes fastest, up or down, among those in all readings, and its slope."""
    sensors = set.intersection(*(set(values) for _, values in readings))
    slopes = {
        name: slope_c_per_min([at for at, _ in readings], [values[name] for _, values in readings]) for name in sensors
    }
    name = max(sorted(slopes), key=lambda sensor: abs(slopes[sensor]))
    return name, slopes[name]


def wait_until_stable(node: Node, settings: Thermal) -> ThermalGate:
    """Wait until the slope of every sensor over the last window is below the limit, at most ``wait_s``."""
    began = node.monotonic_s()
    readings: list[tuple[float, Mapping[str, float]]] = []
    sensor, slope = "", 0.0
    while True:
        now = node.monotonic_s()
        sensors = node.temperatures()
        if isinstance(sensors, Unknown):
            return ThermalGate(settled=False, waited_s=now - began, slope_c_per_min=sensors, sensor="")
        readings = [*((at, values) for at, values in readings if now - at <= settings.window_s), (now, sensors)]
        if now - readings[0][0] >= settings.window_s - settings.every_s / 2 and len(readings) > 1:
            sensor, slope = steepest(readings)
            if abs(slope) < settings.slope_c_per_min:
                return ThermalGate(settled=True, waited_s=now - began, slope_c_per_min=slope, sensor=sensor)
        if now - began >= settings.wait_s:
            return ThermalGate(settled=False, waited_s=now - began, slope_c_per_min=slope, sensor=sensor)
        node.sleep(settings.every_s)


def check_thermal(gate: ThermalGate, settings: Thermal) -> Iterator[Refusal]:
    """Yield the reasons why timing may not begin."""
    if isinstance(gate.slope_c_per_min, Unknown):
        if settings.required:
            yield refusal("thermal", f"cannot be told: {gate.slope_c_per_min.unknown}")
    elif not gate.settled:
        yield refusal(
            "thermal",
            f"after {gate.waited_s:.0f} s {gate.sensor} still changes by {gate.slope_c_per_min:+.2f} °C a minute, "
            f"expected less than {settings.slope_c_per_min:g}",
        )
