"""Tests reading a GPU through NVML: each value separately, unknown with a reason where it is not supported."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from memarena_spark.facts import Gpu, GpuProcess, Unknown
from memarena_spark.machine import gpu

T = TypeVar("T")


class NvmlError(Exception):
    """Replaces ``pynvml.NVMLError``."""


@dataclass
class Nvml:
    """The part of pynvml that is used, with the values of a GB10."""

    refuses: tuple[str, ...] = ()
    bits: int = 0
    pids: tuple[int, ...] = ()
    open: int = 0
    NVMLError: type[Exception] = NvmlError
    NVML_TEMPERATURE_GPU: int = 0
    NVML_CLOCK_SM: int = 1

    def _give(self, name: str, value: T) -> T:
        if name in self.refuses:
            raise NvmlError("Not Supported")
        return value

    def nvmlInit(self) -> None:
        self._give("init", None)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        return self._give("handle", index)

    def nvmlDeviceGetName(self, _: object) -> Any:
        """Return bytes, as older versions of pynvml do."""
        return b"NVIDIA GB10"

    def nvmlDeviceGetTemperature(self, _: object, sensor: int) -> int:
        assert sensor == self.NVML_TEMPERATURE_GPU
        return self._give("temperature", 44)

    def nvmlDeviceGetClockInfo(self, _: object, clock: int) -> int:
        assert clock == self.NVML_CLOCK_SM
        return self._give("clock", 2400)

    def nvmlDeviceGetMaxClockInfo(self, _: object, clock: int) -> int:
        assert clock == self.NVML_CLOCK_SM
        return self._give("max", 3003)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _: object) -> int:
        return self._give("reasons", self.bits)

    def nvmlDeviceGetComputeRunningProcesses(self, _: object) -> list[Any]:
        return self._give("processes", [SimpleNamespace(pid=pid) for pid in self.pids])

    def nvmlDeviceGetGraphicsRunningProcesses(self, _: object) -> list[Any]:
        return []


def read(nvml: Nvml) -> Gpu | Unknown:
    return gpu.read_gpu(0, nvml)


def test_a_gpu_is_described_and_the_library_is_shut_down() -> None:
    nvml = Nvml(bits=0x8 | 0x1, pids=(os.getpid(), 2**22 + 1))
    gpu = read(nvml)
    assert isinstance(gpu, Gpu)
    assert (gpu.name, gpu.driver, gpu.max_sm_clock_mhz) == ("NVIDIA GB10", "580.95.05", 3003.0)
    assert gpu.slowdowns == ("hardware slowdown",)
    assert isinstance(gpu.processes, tuple)
    assert [p.pid for p in gpu.processes] == [os.getpid(), 2**22 + 1]
    assert "python" in gpu.processes[0].name
    assert gpu.processes[1] == GpuProcess(pid=2**22 + 1, name="")
    assert nvml.open == 0


def test_every_throttle_reason_but_idle_counts_as_a_slowdown() -> None:
    assert gpu.slowdowns(0x1 | 0x2 | 0x10 | 0x100) == ()
    assert len(gpu.slowdowns(0xFFFF)) == len(gpu.SLOWDOWNS)


@pytest.mark.parametrize(
    ("what", "field_name"),
    [
        ("temperature", "temperature_c"),
        ("max", "max_sm_clock_mhz"),
        ("reasons", "slowdowns"),
        ("processes", "processes"),
    ],
)
def test_unsupported_values_are_unknown_and_the_others_are_read(what: str, field_name: str) -> None:
    nvml = Nvml(refuses=(what,))
    gpu = read(nvml)
    assert isinstance(gpu, Gpu)
    assert isinstance(getattr(gpu, field_name), Unknown)
    assert gpu.sm_clock_mhz == 2400.0
    assert nvml.open == 0


@pytest.mark.parametrize("what", ["init", "handle"])
def test_without_driver_or_gpu_there_is_a_reason(what: str) -> None:
    nvml = Nvml(refuses=(what,))
    gpu = read(nvml)
    assert isinstance(gpu, Unknown)
    assert "Not Supported" in gpu.unknown
    assert nvml.open == 0


def test_the_clock_is_read_repeatedly_with_the_library_opened_once() -> None:
    nvml = Nvml()
    with gpu.sm_clock(0, nvml) as clock:
        assert [clock(), clock()] == [2400.0, 2400.0]
        assert nvml.open == 1
        nvml.refuses = ("clock",)
        assert clock() == Unknown(unknown="NVML, SM clock: Not Supported")
    assert nvml.open == 0


@pytest.mark.parametrize("what", ["init", "handle"])
def test_the_clock_without_a_gpu_is_unknown(what: str) -> None:
    nvml = Nvml(refuses=(what,))
    with gpu.sm_clock(0, nvml) as clock:
        assert clock() == Unknown(unknown="NVML, GPU 0: Not Supported")
    assert nvml.open == 0
