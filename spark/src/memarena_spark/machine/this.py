"""Implements the node on the real machine: facts from the kernel, the driver, the servers and the container daemon."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from memarena_spark.facts import CanaryResult, Embedder, Gpu, Identity, Image, Memory, ReaderServer, Unknown
from memarena_spark.machine import gpu, host, images, services
from memarena_spark.machine.gpu_benchmark import run_canary
from memarena_spark.plans import EmbedderSpec, ReaderServerSpec
from memarena_spark.profiles import CanarySettings
from memarena_spark.watching.addresses import Reach, reach_of


class ThisMachine:
    """The machine on which this program runs.

    ``root``: folder of /proc and /sys; ``reader_api_key``: key of the model server.
    """

    def __init__(self, root: Path = Path("/"), reader_api_key: str | None = None) -> None:
        self._root = root
        self._reader_api_key = reader_api_key

    def identity(self) -> Identity:
        """Return name, processor, memory, kernel and boot id of this machine."""
        return host.identity(self._root)

    def gpu(self) -> Gpu | Unknown:
        """Return the first GPU, through NVML."""
        return gpu.read_gpu()

    def memory(self) -> Memory | Unknown:
        """Return available memory and swap in use, from /proc/meminfo."""
        return host.memory(self._root)

    def free_bytes(self, folder: Path) -> int | Unknown:
        """Return the free bytes where ``folder`` is or will be."""
        return host.free_bytes(folder)

    def may_not_write(self, folder: Path) -> str:
        """Return why this user cannot write in ``folder``, or create it; empty if they can."""
        return host.may_not_write(folder)

    def cpu_busy_percent(self) -> float | Unknown:
        """Return the load of all CPUs together over a second, in percent."""
        return host.cpu_busy_percent()

    def clock_synchronised(self) -> bool | Unknown:
        """Return whether the kernel's clock is synchronised (adjtimex(2)), as any time daemon sets it."""
        return host.clock_synchronised()

    def on_battery(self) -> bool | Unknown:
        """Return whether the machine runs on a battery, by /sys/class/power_supply."""
        return host.on_battery(self._root)

    def governors(self) -> tuple[str, ...] | Unknown:
        """Return the distinct frequency governors of the CPUs."""
        return host.governors(self._root)

    def temperatures(self) -> dict[str, float] | Unknown:
        """Return temperatures of the kernel's sensors and of the GPU in °C, by sensor."""
        celsius = host.temperatures(self._root)
        card = gpu.read_gpu()
        if isinstance(card, Gpu) and not isinstance(card.temperature_c, Unknown):
            return {**({} if isinstance(celsius, Unknown) else celsius), "gpu": card.temperature_c}
        return celsius

    def packages(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """Return the installed version of each package; None: not installed."""
        versions: dict[str, str | None] = {}
        for name in names:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                versions[name] = None
        return versions

    def image(self, service: str) -> Image | Unknown:
        """Return the image of a running container, or of ``image:REFERENCE``."""
        return images.image_of(service)

    def embedder(self, spec: EmbedderSpec) -> Embedder | Unknown:
        """Ask ollama."""
        return services.ask_embedder(spec)

    def reader(self, spec: ReaderServerSpec) -> ReaderServer | Unknown:
        """Ask the model server."""
        return services.ask_reader(spec, self._reader_api_key)

    def reader_counts(self, spec: ReaderServerSpec) -> Mapping[str, float] | Unknown:
        """Return the model server's own counters of requests and tokens."""
        return services.count_requests(spec, self._reader_api_key)

    def reach_of(self, url: str) -> Reach:
        """Return where a server is, by name resolution and the networks of this process."""
        return reach_of(url)

    def open_to_containers(self, url: str) -> bool:
        """Whether the server listens on all addresses of this machine, or is on the host of this container."""
        return services.open_to_containers(url)

    def canary(self, settings: CanarySettings) -> CanaryResult | Unknown:
        """Run the compute canary."""
        return run_canary(settings)

    def monotonic_s(self) -> float:
        """Return CLOCK_MONOTONIC in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
