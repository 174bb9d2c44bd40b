"""Runs the compute canary: repeats a matrix multiplication, to detect a machine that is slow and shows no reason.

It runs in a separate process (``python -m memarena_spark.machine.gpu_benchmark``), which frees the GPU when it ends.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
from memarena.processes import python_module
from pydantic import ValidationError

from memarena_spark.facts import CanaryResult, Unknown
from memarena_spark.machine.gpu import sm_clock
from memarena_spark.profiles import CanarySettings

WINDOW_S = 1.0
_AHEAD_S = 0.1
"""Seconds of products that are queued while a GPU's clock is read, which takes milliseconds."""
_AHEAD_AT_MOST = 256
"""Limit of queued products, since drivers limit their queue."""
_START_S = 120.0
"""Seconds that the start may take, in which the library is loaded and the device initialized."""


def run_canary(settings: CanarySettings) -> CanaryResult | Unknown:
    """Run the canary in its own process; :class:`~memarena_spark.facts.Unknown` says why there is no result."""
    command = python_module("memarena_spark.machine.gpu_benchmark", "--device", settings.device)
    command += ["--dtype", settings.dtype]
    command += ["--size", str(settings.size), "--seconds", str(settings.seconds)]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=settings.seconds + _START_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unknown(unknown=f"the canary did not end: {error}")
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or ["no reason given"]
        return Unknown(unknown=f"the canary failed: {lines[-1][:300]}")
    try:
        return CanaryResult.model_validate_json(process.stdout)
    except ValidationError as error:
        return Unknown(unknown=f"the canary gave no result: {error.errors()[0]['msg']}")


@dataclass(frozen=True)
class Engine:
    """A device's multiplication. ``multiply`` may only queue the work; ``finish`` waits until the queue is empty."""

    multiply: Callable[[], None]
    finish: Callable[[], None]
    clock_mhz: Callable[[], float | Unknown]
    mark: Callable[[], Callable[[], bool]]
    """Marks the work queued so far; returns a function that tells whether some of it is not done."""
    ahead_s: float = 0.0
    """Seconds of work to queue before a clock is read, longer than the reading; 0 if ``multiply`` does not queue."""


def measure(engine: Engine, *, size: int, seconds: float) -> tuple[list[float], float | Unknown]:
    """Return the TFLOP/s of each window of about a second, and the median clock in MHz.

    A product of two n × n matrices counts as 2 n³ operations. Each window's clock is read while products are under way:
    an idle device lowers its clock at once, or keeps a high one that it would not hold under load.
    """
    for _ in range(2):  # The first includes loading; only the second is timed.
        start_s = time.monotonic()
        engine.multiply()
        engine.finish()
    once_s = max(time.monotonic() - start_s, 1e-6)
    ahead = min(math.ceil(engine.ahead_s / once_s), _AHEAD_AT_MOST)
    windows: list[float] = []
    clocks: list[float | Unknown] = []
    start_s = time.monotonic()
    while not windows or time.monotonic() - start_s < seconds:
        start, count = time.monotonic(), 0
        while time.monotonic() - start < min(WINDOW_S, seconds) or not count:
            engine.multiply()
            engine.finish()
            count += 1
        for _ in range(ahead):
            engine.multiply()
        clocks.append(_clock_at_work(engine))
        engine.finish()
        windows.append(2 * size**3 * (count + ahead) / (time.monotonic() - start) / 1e12)
    clock_readings = [clock for clock in clocks if not isinstance(clock, Unknown)]
    return windows, statistics.median(clock_readings) if clock_readings else clocks[0]


def _clock_at_work(engine: Engine) -> float | Unknown:
    """Return the clock in MHz; Unknown if the work was done before the reading ended."""
    at_work = engine.mark()
    clock = engine.clock_mhz()
    return clock if at_work() else Unknown(unknown="the device had done its work before its clock was read")


def cpu_canary(size: int, seconds: float) -> CanaryResult:
    """Run the canary on all CPUs, with numpy's BLAS."""
    generator = np.random.default_rng(0)
    a, b = (generator.random((size, size), dtype=np.float32) for _ in range(2))
    product = np.empty_like(a)

    def multiply() -> None:
        np.matmul(a, b, out=product)

    # A product is done when multiply returns; the kernel's clock is an average over the time before.
    engine = Engine(multiply, lambda: None, _cpu_clock, mark=lambda: lambda: True)
    windows, clock = measure(engine, size=size, seconds=seconds)
    return _result("cpu", f"numpy {np.__version__}", "float32", size, seconds, windows, clock)


def cuda_canary(torch: Any, size: int, seconds: float, dtype: str) -> CanaryResult:
    """Run the canary on the first CUDA device, with torch."""
    device = torch.device("cuda", 0)
    torch.manual_seed(0)
    a, b = (torch.rand(size, size, device=device, dtype=getattr(torch, dtype)) for _ in range(2))
    product = torch.empty_like(a)

    def mark() -> Callable[[], bool]:
        event = torch.cuda.Event()
        event.record()
        return lambda: not event.query()

    with sm_clock() as clock_mhz:
        engine = Engine(lambda: torch.matmul(a, b, out=product), torch.cuda.synchronize, clock_mhz, mark, _AHEAD_S)
        windows, clock = measure(engine, size=size, seconds=seconds)
    name = f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name(0)}"
    return _result("cuda", name, dtype, size, seconds, windows, clock)


def _result(
    device: str, engine: str, dtype: str, size: int, seconds: float, windows: Sequence[float], clock: float | Unknown
) -> CanaryResult:
    return CanaryResult(
        device=device,
        engine=engine,
        dtype=dtype,
        size=size,
        seconds=seconds,
        windows=len(windows),
        tflops=statistics.median(windows),
        tflops_low=min(windows),
        clock_mhz=clock,
    )


def _cpu_clock() -> float | Unknown:
    try:
        clock = psutil.cpu_freq()
    except (OSError, RuntimeError) as error:
        return Unknown(unknown=f"CPU clock: {error}")
    return float(clock.current) if clock and clock.current else Unknown(unknown="the kernel gives no CPU clock")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the result as JSON and return 0; return 1 with a line on standard error if there is no such device."""
    parser = argparse.ArgumentParser(prog="memarena_spark.machine.gpu_benchmark")
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args(argv)
    if options.device == "cpu":
        result = cpu_canary(options.size, options.seconds)
    else:
        try:
            torch = importlib.import_module("torch")
        except ModuleNotFoundError:
            sys.stderr.write("torch is not installed; the canary of a CUDA device needs it\n")
            return 1
        if not torch.cuda.is_available():
            sys.stderr.write("torch finds no CUDA device\n")
            return 1
        result = cuda_canary(torch, options.size, options.seconds, options.dtype)
    sys.stdout.write(json.dumps(result.model_dump(mode="json")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
