"""Defines the interface of a meter, and opens meters by their specifications in settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from memarena.meters.cgroups import cgroup_source
from memarena.meters.hwmon import hwmon_source
from memarena.meters.nvml import NvmlSource, load_nvml
from memarena.meters.procfs import procfs_source
from memarena.meters.readings import Channel, MeterError, Reading, Unavailable
from memarena.meters.scripted import ConstantSource, NoSource, ReplaySource


class Source(Protocol):
    """An open meter. Its channels are determined once, when it is opened."""

    @property
    def name(self) -> str:
        """Name of the source in the samples file; unique among the sources of a sampler."""

    @property
    def channels(self) -> Sequence[Channel]:
        """Channels that the machine has."""

    @property
    def unavailable(self) -> Sequence[Unavailable]:
        """Channels that the machine does not have, each with its reason."""

    def read(self) -> Sequence[Reading | Unavailable]:
        """Read ``channels``, in that order.

        Raises :class:`~memarena.meters.readings.MeterFailedError` when nothing more will come.
        """

    def close(self) -> None:
        """Close the device."""


def _constant(text: str) -> Source:
    channel, _, reading_text = text.partition("=")
    value, _, unit = reading_text.partition(" ")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise MeterError(f"constant:{text}: expected constant:CHANNEL=VALUE UNIT, such as gpu_power=25 W")
    return ConstantSource.of(channel, number, unit)


def _cgroup(text: str) -> Source:
    name, _, folder = text.partition("=")
    if not name or not folder:
        raise MeterError(f"cgroup:{text}: expected cgroup:NAME=FOLDER")
    return cgroup_source(name, Path(folder))


def _nvml(text: str) -> Source:
    if text and not text.isdecimal():
        raise MeterError(f"nvml:{text}: expected nvml or nvml:INDEX")
    return NvmlSource(load_nvml(), int(text or 0))


def _replay(text: str) -> Source:
    if not text:
        raise MeterError("replay: expected replay:FILE")
    return ReplaySource(Path(text))


def _none(text: str) -> Source:
    if text:
        raise MeterError(f"none:{text}: none takes no setting")
    return NoSource()


KINDS: dict[str, Callable[[str], Source]] = {
    "nvml": _nvml,
    "hwmon": lambda text: hwmon_source(Path(text or "/sys/class/hwmon")),
    "procfs": lambda text: procfs_source(Path(text or "/proc")),
    "cgroup": _cgroup,
    "replay": _replay,
    "constant": _constant,
    "none": _none,
}


def open_source(spec: str) -> Source:
    """Open the meter that ``spec`` names.

    ``nvml[:INDEX]``, ``hwmon[:ROOT]``, ``procfs[:ROOT]``, ``cgroup:NAME=FOLDER``, ``replay:FILE``,
    ``constant:CHANNEL=VALUE UNIT`` or ``none``. A missing device is not an error: its channels are unavailable.

    Raises :class:`~memarena.meters.readings.MeterError` if ``spec`` is none of these.
    """
    kind, _, text = spec.partition(":")
    if kind not in KINDS:
        raise MeterError(f"{spec}: no such meter; expected one of {', '.join(KINDS)}")
    return KINDS[kind](text)


def open_sources(specs: Sequence[str]) -> list[Source]:
    """Open several meters. Raises :class:`~memarena.meters.readings.MeterError` also if two have the same channel."""
    if not specs:
        raise MeterError("no meter is named; say none if nothing is to be measured")
    sources = [open_source(spec) for spec in specs]
    names = [source.name for source in sources]
    channels = [channel.name for source in sources for channel in source.channels]
    channels += [entry.channel.name for source in sources for entry in source.unavailable]
    for kind, names_of_kind in (("meter", names), ("channel", channels)):
        for name in names_of_kind:
            if names_of_kind.count(name) > 1:
                raise MeterError(f"{', '.join(specs)}: the {kind} {name} is there twice")
    return sources
