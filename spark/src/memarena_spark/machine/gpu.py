"""Reads facts of the GPU through NVML: name, driver, clocks, reasons for a lowered clock, processes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar, cast

import psutil
from memarena.meters.nvml import NOT_INSTALLED, load_nvml

from memarena_spark.facts import Gpu, GpuProcess, Unknown

T = TypeVar("T")

# NVML, nvmlClocksEventReasons: bits of a lowered speed, without the bit for an idle GPU.
SLOWDOWNS = {
    0x0000000000000004: "power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "power brake",
}
_NAME_WORDS = 6


class Library(Protocol):
    """The part of the module ``pynvml`` that is used here."""

    NVMLError: type[Exception]
    NVML_TEMPERATURE_GPU: int
    NVML_CLOCK_SM: int

    def nvmlInit(self) -> None: ...  # noqa: N802
    def nvmlShutdown(self) -> None: ...  # noqa: N802
    def nvmlSystemGetDriverVersion(self) -> str: ...  # noqa: N802
    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> object: ...  # noqa: N802
    def nvmlDeviceGetName(self, handle: object, /) -> str: ...  # noqa: N802
    def nvmlDeviceGetTemperature(self, handle: object, sensor: int, /) -> int: ...  # noqa: N802
    def nvmlDeviceGetClockInfo(self, handle: object, clock: int, /) -> int: ...  # noqa: N802
    def nvmlDeviceGetMaxClockInfo(self, handle: object, clock: int, /) -> int: ...  # noqa: N802
    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object, /) -> int: ...  # noqa: N802
    def nvmlDeviceGetComputeRunningProcesses(self, handle: object, /) -> list[Any]: ...  # noqa: N802
    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: object, /) -> list[Any]: ...  # noqa: N802


def read_gpu(index: int = 0, nvml: Library | None = None) -> Gpu | Unknown:
    """Return the GPU with this index, or Unknown with the reason."""
    library = nvml or cast("Library | None", load_nvml())
    if library is None:
        return Unknown(unknown=NOT_INSTALLED)
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        return Unknown(unknown=f"NVML: {error}")
    try:
        return _read(library, library.nvmlDeviceGetHandleByIndex(index))
    except library.NVMLError as error:
        return Unknown(unknown=f"NVML, GPU {index}: {error}")
    finally:
        library.nvmlShutdown()


@contextlib.contextmanager
def sm_clock(index: int = 0, nvml: Library | None = None) -> Iterator[Callable[[], float | Unknown]]:
    """Yield a function that reads the GPU's SM clock in MHz, or returns Unknown with the reason.

    NVML stays initialized during the block, so that a reading is fast.
    """
    library = nvml or cast("Library | None", load_nvml())
    if library is None:
        yield lambda: Unknown(unknown=NOT_INSTALLED)
        return
    gpu: object = None
    failure = ""
    with contextlib.ExitStack() as stack:
        try:
            library.nvmlInit()
            stack.callback(library.nvmlShutdown)
            gpu = library.nvmlDeviceGetHandleByIndex(index)
        except library.NVMLError as error:
            failure = f"NVML, GPU {index}: {error}"

        def read() -> float | Unknown:
            if failure:
                return Unknown(unknown=failure)
            try:
                return float(library.nvmlDeviceGetClockInfo(gpu, library.NVML_CLOCK_SM))
            except library.NVMLError as error:
                return Unknown(unknown=f"NVML, SM clock: {error}")

        yield read


def _read(nvml: Library, gpu: object) -> Gpu:
    """Read all facts of a GPU; a quantity that NVML refuses is Unknown."""

    def ask(quantity: str, getter: Callable[[], T]) -> T | Unknown:
        try:
            return getter()
        except nvml.NVMLError as error:
            return Unknown(unknown=f"NVML, {quantity}: {error}")

    return Gpu(
        name=_str(nvml.nvmlDeviceGetName(gpu)),
        driver=_str(nvml.nvmlSystemGetDriverVersion()),
        temperature_c=ask("temperature", lambda: float(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU))),
        sm_clock_mhz=ask("SM clock", lambda: float(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM))),
        max_sm_clock_mhz=ask(
            "highest SM clock", lambda: float(nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM))
        ),
        slowdowns=ask("slowdowns", lambda: slowdowns(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))),
        processes=ask("processes", lambda: _processes(nvml, gpu)),
    )


def slowdowns(bits: int) -> tuple[str, ...]:
    """Return the names of the reasons for a lowered clock whose bits are set."""
    return tuple(name for bit, name in SLOWDOWNS.items() if bits & bit)


def _processes(nvml: Library, gpu: object) -> tuple[GpuProcess, ...]:
    running = [*nvml.nvmlDeviceGetComputeRunningProcesses(gpu), *nvml.nvmlDeviceGetGraphicsRunningProcesses(gpu)]
    return tuple(
        GpuProcess(pid=pid, name=_process_name(pid)) for pid in sorted({int(process.pid) for process in running})
    )


def _process_name(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline()[:_NAME_WORDS])[:200]
    except psutil.Error:
        return ""


def _str(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text
