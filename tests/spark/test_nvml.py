"""What NVML tells of a GPU: each fact for itself, unknown with a reason where it is not supported."""

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
    """As pynvml's."""


@dataclass
class Nvml:
    """As much of pynvml as is used, with a GB10's answers."""

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
        """Bytes, as older versions of pynvml have it."""
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


def test_a_gpu_is_described_and_the_library_let_go_of() -> None:
    nvml = Nvml(bits=0x8 | 0x1, pids=(os.getpid(), 2**22 + 1))
    found = read(nvml)
    assert isinstance(found, Gpu)
    assert (found.name, found.driver, found.max_sm_clock_mhz) == ("NVIDIA GB10", "580.95.05", 3003.0)
    assert found.slowdowns == ("hardware slowdown",)
    assert isinstance(found.processes, tuple)
    assert [p.pid for p in found.processes] == [os.getpid(), 2**22 + 1]
    assert "python" in found.processes[0].name
    assert found.processes[1] == GpuProcess(pid=2**22 + 1, name="")
    assert nvml.open == 0


def test_idleness_is_no_slowdown_and_every_other_reason_is() -> None:
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
def test_what_the_driver_does_not_support_is_unknown_and_the_rest_is_read(what: str, field_name: str) -> None:
    nvml = Nvml(refuses=(what,))
    found = read(nvml)
    assert isinstance(found, Gpu)
    assert isinstance(getattr(found, field_name), Unknown)
    assert found.sm_clock_mhz == 2400.0
    assert nvml.open == 0


@pytest.mark.parametrize("what", ["init", "handle"])
def test_without_driver_or_gpu_there_is_a_reason(what: str) -> None:
    nvml = Nvml(refuses=(what,))
    found = read(nvml)
    assert isinstance(found, Unknown)
    assert "Not Supported" in found.unknown
    assert nvml.open == 0


def test_the_clock_is_read_again_and_again_with_the_library_opened_once() -> None:
    nvml = Nvml()
    with gpu.sm_clock(0, nvml) as clock:
        assert [clock(), clock()] == [2400.0, 2400.0]
        assert nvml.open == 1
        nvml.refuses = ("clock",)
        assert clock() == Unknown(unknown="NVML, SM clock: Not Supported")
    assert nvml.open == 0


@pytest.mark.parametrize("what", ["init", "handle"])
def test_a_clock_of_no_gpu_is_unknown(what: str) -> None:
    nvml = Nvml(refuses=(what,))
    with gpu.sm_clock(0, nvml) as clock:
        assert clock() == Unknown(unknown="NVML, GPU 0: Not Supported")
    assert nvml.open == 0
