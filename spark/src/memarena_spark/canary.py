"""The compute canary: one matrix multiplication over and over, to find a machine that is slow and shows no reason.

It runs in a process of its own (``python -m memarena_spark.canary``), so that what it takes of a GPU goes with it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil
from pydantic import ValidationError

from memarena_spark.facts import CanaryResult, Gpu, Unknown
from memarena_spark.machine.gpu import read_gpu
from memarena_spark.profiles import CanarySettings

WINDOW_S = 1.0
_START_S = 120.0
"""What loading the library and the device may take beside the measuring."""


def run_canary(settings: CanarySettings) -> CanaryResult | Unknown:
    """Run the canary in a process of its own; :class:`~memarena_spark.facts.Unknown` says why there is no result."""
    command = [sys.executable, "-m", "memarena_spark.canary", "--device", settings.device, "--dtype", settings.dtype]
    command += ["--size", str(settings.size), "--seconds", str(settings.seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=settings.seconds + _START_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unknown(unknown=f"the canary did not end: {error}")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        return Unknown(unknown=f"the canary failed: {lines[-1][:300]}")
    try:
        return CanaryResult.model_validate_json(done.stdout)
    except ValidationError as error:
        return Unknown(unknown=f"the canary gave no result: {error.errors()[0]['msg']}")


def measure(
    multiply: Callable[[], None],
    finish: Callable[[], None],
    clock_mhz: Callable[[], float | Unknown],
    *,
    size: int,
    seconds: float,
) -> tuple[list[float], float | Unknown]:
    """TFLOP/s of each window of about a second, and the median clock.

    ``multiply`` may only begin the work; ``finish`` waits until it is done. A product of two n × n matrices counts as
    2 n³ operations.
    """
    multiply()
    finish()
    windows: list[float] = []
    clocks: list[float | Unknown] = []
    began = time.monotonic()
    while not windows or time.monotonic() - began < seconds:
        start, count = time.monotonic(), 0
        while (spent := time.monotonic() - start) < min(WINDOW_S, seconds) or not count:
            multiply()
            finish()
            count += 1
        spent = time.monotonic() - start
        clocks.append(clock_mhz())
        windows.append(2 * size**3 * count / spent / 1e12)
    known = [clock for clock in clocks if not isinstance(clock, Unknown)]
    return windows, statistics.median(known) if known else clocks[0]


def cpu_canary(size: int, seconds: float) -> CanaryResult:
    """On all CPUs, by numpy's BLAS."""
    generator = np.random.default_rng(0)
    left, right = (generator.random((size, size), dtype=np.float32) for _ in range(2))
    product = np.empty_like(left)

    def multiply() -> None:
        np.matmul(left, right, out=product)

    windows, clock = measure(multiply, lambda: None, _cpu_clock, size=size, seconds=seconds)
    return _result("cpu", f"numpy {np.__version__}", "float32", size, seconds, windows, clock)


def cuda_canary(torch: Any, size: int, seconds: float, dtype: str) -> CanaryResult:
    """On the first CUDA device, by torch."""
    device = torch.device("cuda", 0)
    torch.manual_seed(0)
    left, right = (torch.rand(size, size, device=device, dtype=getattr(torch, dtype)) for _ in range(2))
    product = torch.empty_like(left)
    windows, clock = measure(
        lambda: torch.matmul(left, right, out=product),
        torch.cuda.synchronize,
        _gpu_clock,
        size=size,
        seconds=seconds,
    )
    engine = f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name(0)}"
    return _result("cuda", engine, dtype, size, seconds, windows, clock)


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


def _gpu_clock() -> float | Unknown:
    gpu = read_gpu()
    return gpu.sm_clock_mhz if isinstance(gpu, Gpu) else gpu


def main(argv: Sequence[str] | None = None) -> int:
    """Print the result as JSON; 1 with one line on standard error if there is no such device."""
    parser = argparse.ArgumentParser(prog="memarena_spark.canary")
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args(argv)
    if given.device == "cpu":
        result = cpu_canary(given.size, given.seconds)
    else:
        try:
            torch = importlib.import_module("torch")
        except ModuleNotFoundError:
            sys.stderr.write("torch is not installed; the canary of a CUDA device needs it\n")
            return 1
        if not torch.cuda.is_available():
            sys.stderr.write("torch finds no CUDA device\n")
            return 1
        result = cuda_canary(torch, given.size, given.seconds, given.dtype)
    sys.stdout.write(json.dumps(result.model_dump(mode="json")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
