"""Reads the GPU through NVML: power, temperature, utilisation, SM clock, total-energy counter.

NVML's power is a running average over about a second, and of the GPU's rail alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from memarena.meters.readings import Channel, Reading, Unavailable, one_line, reading

POWER = Channel("gpu_power", "W")
TEMPERATURE = Channel("gpu_temperature", "°C")
UTILISATION = Channel("gpu_utilisation", "%")
SM_CLOCK = Channel("gpu_sm_clock", "MHz")
ENERGY = Channel("gpu_energy", "J")

NOT_INSTALLED = "the package nvidia-ml-py is not installed (pip install 'memarena[nvml]')"


class Utilisation(Protocol):
    """NVML's answer for utilisation."""

    gpu: int


class NvmlLibrary(Protocol):
    """The part of the module ``pynvml`` that is used; errors are its ``NVMLError`` with the code in ``value``."""

    NVMLError: type[Exception]
    NVML_ERROR_NOT_SUPPORTED: int
    NVML_TEMPERATURE_GPU: int
    NVML_CLOCK_SM: int

    def nvmlInit(self) -> None: ...  # noqa: N802
    def nvmlShutdown(self) -> None: ...  # noqa: N802
    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> object: ...  # noqa: N802
    def nvmlDeviceGetPowerUsage(self, handle: object, /) -> int: ...  # noqa: N802
    def nvmlDeviceGetTemperature(self, handle: object, sensor: int, /) -> int: ...  # noqa: N802
    def nvmlDeviceGetUtilizationRates(self, handle: object, /) -> Utilisation: ...  # noqa: N802
    def nvmlDeviceGetClockInfo(self, handle: object, clock: int, /) -> int: ...  # noqa: N802
    def nvmlDeviceGetTotalEnergyConsumption(self, handle: object, /) -> int: ...  # noqa: N802


def load_nvml() -> NvmlLibrary | None:
    """Return the module ``pynvml``, or None if the optional package is not installed."""
    try:
        return cast(NvmlLibrary, importlib.import_module("pynvml"))
    except ModuleNotFoundError:
        return None


def _channels(nvml: NvmlLibrary) -> dict[Channel, Callable[[Any], float]]:
    return {
        POWER: lambda gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
        TEMPERATURE: lambda gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
        UTILISATION: lambda gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
        SM_CLOCK: lambda gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
        ENERGY: lambda gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1e3,
    }


class NvmlSource:
    """A GPU by NVML's index. Without driver, package or GPU every channel is unavailable with the reason."""

    def __init__(self, nvml: NvmlLibrary | None, index: int = 0) -> None:
        self.name = "nvml"
        self._nvml = nvml
        self._gpu: object = None
        self._open = False
        self.channels: tuple[Channel, ...] = ()
        self.unavailable: tuple[Unavailable, ...] = ()
        if nvml is None:
            self.unavailable = self._nothing(NOT_INSTALLED)
            return
        self._getters = _channels(nvml)
        try:
            nvml.nvmlInit()
            self._open = True
            self._gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            self.unavailable = self._nothing(f"NVML, GPU {index}: {one_line(error)}")
            return
        first = [self._get(nvml, channel) for channel in self._getters]
        self.channels = tuple(entry.channel for entry in first if isinstance(entry, Reading))
        self.unavailable = tuple(entry for entry in first if isinstance(entry, Unavailable))

    @staticmethod
    def _nothing(reason: str) -> tuple[Unavailable, ...]:
        return tuple(Unavailable(channel, reason) for channel in (POWER, TEMPERATURE, UTILISATION, SM_CLOCK, ENERGY))

    def _get(self, nvml: NvmlLibrary, channel: Channel) -> Reading | Unavailable:
        try:
            return reading(channel, self._getters[channel](self._gpu))
        except nvml.NVMLError as error:
            if getattr(error, "value", None) == nvml.NVML_ERROR_NOT_SUPPORTED:
                return Unavailable(channel, "NVML: not supported by this GPU")
            return Unavailable(channel, f"NVML: {one_line(error)}")

    def read(self) -> Sequence[Reading | Unavailable]:
        """Read the channels that the GPU supports; an error of a channel does not affect the others."""
        if self._nvml is None:
            return ()
        return tuple(self._get(self._nvml, channel) for channel in self.channels)

    def close(self) -> None:
        """Close NVML; calling it twice is fine."""
        if self._nvml is not None and self._open:
            self._open = False
            self._nvml.nvmlShutdown()
