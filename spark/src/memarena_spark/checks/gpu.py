"""Checks that the GPU is that of the profile, with the pinned driver, at full speed and without other processes."""

from __future__ import annotations

from collections.abc import Iterator

from memarena_spark.errors import Refusal
from memarena_spark.facts import Gpu, Unknown
from memarena_spark.node import Node
from memarena_spark.plans import Plan
from memarena_spark.profiles import NodeProfile
from memarena_spark.refusal_codes import refusal


def check_gpu(node: Node, plan: Plan, profile: NodeProfile) -> Iterator[Refusal]:
    """Check the GPU: name, driver, speed and processes. Nothing is checked if the profile has none."""
    if profile.machine.gpu is None:
        return
    gpu = node.gpu()
    if isinstance(gpu, Unknown):
        yield refusal("gpu-absent", f"cannot be told: {gpu.unknown}")
        return
    if gpu.name != profile.machine.gpu:
        yield refusal("node-mismatch", f"the GPU is {gpu.name}, that of {profile.name} is {profile.machine.gpu}")
    if plan.pins.driver is not None and gpu.driver != plan.pins.driver:
        yield refusal("driver", f"the driver is {gpu.driver}, the plan pins {plan.pins.driver}")
    yield from _speed(gpu, profile)
    if profile.demands.gpu_alone:
        yield from others_on_gpu(gpu, plan)


def _speed(gpu: Gpu, profile: NodeProfile) -> Iterator[Refusal]:
    if profile.demands.no_slowdown:
        if isinstance(gpu.slowdowns, Unknown):
            yield refusal("gpu-slowdown", f"cannot be told: {gpu.slowdowns.unknown}")
        elif gpu.slowdowns:
            yield refusal("gpu-slowdown", f"active now: {', '.join(gpu.slowdowns)}")
    least = profile.limits.max_sm_clock_mhz
    if least is not None:
        clock = gpu.max_sm_clock_mhz
        if isinstance(clock, Unknown):
            yield refusal("gpu-clock", f"cannot be told: {clock.unknown}")
        elif clock < least:
            yield refusal("gpu-clock", f"the highest SM clock is {clock:.0f} MHz, expected at least {least:g} MHz")


def others_on_gpu(gpu: Gpu, plan: Plan) -> Iterator[Refusal]:
    """Yield the processes on the GPU that the plan does not name."""
    if isinstance(gpu.processes, Unknown):
        yield refusal("gpu-busy", f"cannot be told: {gpu.processes.unknown}")
        return
    for process in gpu.processes:
        if not any(word in process.name for word in plan.gpu_processes):
            name = process.name or "a process whose name cannot be read"
            yield refusal("gpu-busy", f"process {process.pid} is on the GPU: {name}")
