"""Implements meters without a device: a replayed recording, a constant, and none.

With the first two, metering and its energies can be tested on machines without such a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memarena.meters.readings import Channel, MeterError, MeterFailedError, Reading, Unavailable
from memarena.meters.samples import read_samples


class ConstantSource:
    """One channel that always reads the same."""

    def __init__(self, value: Reading) -> None:
        self.name = f"constant {value.channel.name}"
        self.channels: Sequence[Channel] = (value.channel,)
        self.unavailable: Sequence[Unavailable] = ()
        self._value = value

    @classmethod
    def of(cls, channel: str, value: float, unit: str) -> ConstantSource:
        """Return a constant source.

        Raises :class:`~memarena.meters.readings.MeterError` for an empty channel or unit.
        """
        return cls(Reading(Channel(channel, unit), value))

    def read(self) -> Sequence[Reading | Unavailable]:
        """Return the constant."""
        return (self._value,)

    def close(self) -> None:
        """Do nothing."""


class NoSource:
    """Nothing is measured, by choice: GPU and system power are unavailable and say so."""

    name = "none"

    def __init__(self) -> None:
        self.channels: Sequence[Channel] = ()
        self.unavailable: Sequence[Unavailable] = tuple(
            Unavailable(Channel(name, "W"), "no meter was asked for") for name in ("gpu_power", "sys_power")
        )

    def read(self) -> Sequence[Reading | Unavailable]:
        """Return nothing."""
        return ()

    def close(self) -> None:
        """Do nothing."""


class ReplaySource:
    """The channels of a samples file, one recorded tick per read, in recorded order; at its end the meter fails.

    Recorded times are not played: the n-th read gives the n-th tick. Raises
    :class:`~memarena.meters.readings.MeterError` if the file cannot be read or holds no sample.
    """

    def __init__(self, path: Path) -> None:
        recorded = read_samples(path)
        self.name = "replay"
        self._path = path
        self._ticks = recorded.by_tick()
        if not self._ticks:
            raise MeterError(f"{path}: no sample to replay")
        self._next = 0
        self.channels: Sequence[Channel] = recorded.channels
        self.unavailable: Sequence[Unavailable] = recorded.unavailable

    def read(self) -> Sequence[Reading | Unavailable]:
        """Return the next recorded tick."""
        if self._next == len(self._ticks):
            raise MeterFailedError(f"{self._path}: the recording ends after {len(self._ticks)} ticks")
        self._next += 1
        return self._ticks[self._next - 1]

    def close(self) -> None:
        """Do nothing."""
