"""Checks the host against profile and plan: machine, versions, free room, idleness, temperature, clock and mains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memarena_spark.errors import Refusal
from memarena_spark.facts import Unknown
from memarena_spark.node import Node
from memarena_spark.plans import Plan
from memarena_spark.profiles import NodeProfile
from memarena_spark.refusal_codes import refusal

GIB = 2**30
MIB = 2**20


def check_identity(node: Node, profile: NodeProfile) -> Iterator[Refusal]:
    """Check architecture, processors and memory against the profile."""
    identity, machine = node.identity(), profile.machine
    if identity.architecture not in machine.architectures:
        expected = " or ".join(machine.architectures)
        yield refusal("node-mismatch", f"architecture is {identity.architecture}, {profile.name} is {expected}")
    if identity.cpu_count < machine.cpu_count_at_least:
        yield refusal(
            "node-mismatch", f"{identity.cpu_count} CPUs, {profile.name} has at least {machine.cpu_count_at_least}"
        )
    if identity.memory_bytes < machine.memory_gib_at_least * GIB:
        yield refusal(
            "node-mismatch",
            f"{identity.memory_bytes / GIB:.1f} GiB of memory, {profile.name} has at least "
            f"{machine.memory_gib_at_least:g} GiB",
        )


def check_versions(node: Node, plan: Plan) -> Iterator[Refusal]:
    """Check kernel, packages and images against the plan's pins."""
    pins = plan.pins
    kernel = node.identity().kernel
    if pins.kernel is not None and kernel != pins.kernel:
        yield refusal("kernel", f"the kernel is {kernel}, the plan pins {pins.kernel}")
    versions = node.packages(pins.packages)
    for name, pin in sorted(pins.packages.items()):
        if versions.get(name) != pin:
            yield refusal("package", f"{name} is {versions.get(name) or 'not installed'}, the plan pins {pin}")
    for service, digest in sorted(pins.images.items()):
        image = node.image(service)
        if isinstance(image, Unknown):
            yield refusal("image", f"{service}: cannot be told: {image.unknown}")
        elif image.digest != digest:
            yield refusal("image", f"{service} runs {image.digest}, the plan pins {digest}")


def check_room(node: Node, profile: NodeProfile, out: Path) -> Iterator[Refusal]:
    """Check memory, swap and disk, and that the output can be written."""
    limits = profile.limits
    memory = node.memory()
    if isinstance(memory, Unknown):
        yield refusal("memory", f"cannot be told: {memory.unknown}")
    else:
        if memory.available_bytes < limits.available_memory_gib * GIB:
            yield refusal(
                "memory",
                f"{memory.available_bytes / GIB:.1f} GiB are available, expected at least "
                f"{limits.available_memory_gib:g} GiB",
            )
        if limits.swap_used_mib is not None and memory.swap_used_bytes > limits.swap_used_mib * MIB:
            yield refusal(
                "swap",
                f"{memory.swap_used_bytes / MIB:.0f} MiB of swap are in use, expected at most "
                f"{limits.swap_used_mib:g} MiB",
            )
    if reason := node.may_not_write(out):
        yield refusal("out", reason)
    free = node.free_bytes(out)
    if isinstance(free, Unknown):
        yield refusal("disk", f"cannot be told: {free.unknown}")
    elif free < limits.free_disk_gib * GIB:
        yield refusal("disk", f"{free / GIB:.2f} GiB are free at {out}, expected at least {limits.free_disk_gib:g} GiB")


def check_rest(node: Node, profile: NodeProfile) -> Iterator[Refusal]:
    """Check that the CPUs are idle, their governor, and the temperature."""
    limits = profile.limits
    if limits.cpu_busy_percent is not None:
        busy = node.cpu_busy_percent()
        if isinstance(busy, Unknown):
            yield refusal("busy", f"cannot be told: {busy.unknown}")
        elif busy > limits.cpu_busy_percent:
            yield refusal("busy", f"the CPUs are {busy:.0f}% busy, expected at most {limits.cpu_busy_percent:g}%")
    if limits.governors is not None:
        governors = node.governors()
        if isinstance(governors, Unknown):
            yield refusal("governor", f"cannot be told: {governors.unknown}")
        elif wrong := [name for name in governors if name not in limits.governors]:
            yield refusal("governor", f"the governor is {wrong[0]}, expected {' or '.join(limits.governors)}")
    if limits.temperature_c is not None:
        sensors = node.temperatures()
        if isinstance(sensors, Unknown):
            yield refusal("temperature", f"cannot be told: {sensors.unknown}")
        elif hot := [name for name, value in sensors.items() if value > limits.temperature_c]:
            worst = max(hot, key=lambda name: sensors[name])
            yield refusal(
                "temperature",
                f"{worst} is at {sensors[worst]:.0f} °C, expected at most {limits.temperature_c:g} °C before a run",
            )


def check_conditions(node: Node, profile: NodeProfile) -> Iterator[Refusal]:
    """Check that the clock is synchronised and the node on mains power."""
    if profile.demands.clock_sync:
        clock_is_synchronised = node.clock_synchronised()
        if isinstance(clock_is_synchronised, Unknown):
            yield refusal("clock-sync", f"cannot be told: {clock_is_synchronised.unknown}")
        elif not clock_is_synchronised:
            yield refusal("clock-sync", "the system's clock is not synchronised")
    if profile.demands.mains_power:
        battery = node.on_battery()
        if isinstance(battery, Unknown):
            yield refusal("power-source", f"cannot be told: {battery.unknown}")
        elif battery:
            yield refusal("power-source", "the node runs on its battery")
