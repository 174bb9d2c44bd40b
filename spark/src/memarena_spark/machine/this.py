"""The real node: every fact from the kernel, the driver, the servers themselves or the container daemon."""

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
    """Where this program runs.

    ``root`` is where /proc and /sys are found; ``reader_api_key`` is what the model server is asked with.
    """

    def __init__(self, root: Path = Path("/"), reader_api_key: str | None = None) -> None:
        self._root = root
        self._reader_api_key = reader_api_key

    def identity(self) -> Identity:
        """Which machine this is."""
        return host.identity(self._root)

    def gpu(self) -> Gpu | Unknown:
        """The first GPU, through NVML."""
        return gpu.read_gpu()

    def memory(self) -> Memory | Unknown:
        """Memory and swap, from /proc/meminfo."""
        return host.memory(self._root)

    def free_bytes(self, folder: Path) -> int | Unknown:
        """Free space where ``folder`` is or will be."""
        return host.free_bytes(folder)

    def may_not_write(self, folder: Path) -> str:
        """Why this user cannot write in ``folder``, or make it."""
        return host.may_not_write(folder)

    def cpu_busy_percent(self) -> float | Unknown:
        """How busy all CPUs together are over a second."""
        return host.cpu_busy_percent()

    def clock_synchronised(self) -> bool | Unknown:
        """What the kernel says of its clock (adjtimex(2)), which any time daemon sets."""
        return host.clock_synchronised()

    def on_battery(self) -> bool | Unknown:
        """From /sys/class/power_supply."""
        return host.on_battery(self._root)

    def governors(self) -> tuple[str, ...] | Unknown:
        """The CPUs' frequency governors."""
        return host.governors(self._root)

    def temperatures(self) -> dict[str, float] | Unknown:
        """Sensors of the kernel and of the GPU."""
        celsius = host.temperatures(self._root)
        card = gpu.read_gpu()
        if isinstance(card, Gpu) and not isinstance(card.temperature_c, Unknown):
            return {**({} if isinstance(celsius, Unknown) else celsius), "gpu": card.temperature_c}
        return celsius

    def packages(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """Installed versions."""
        versions: dict[str, str | None] = {}
        for name in names:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                versions[name] = None
        return versions

    def image(self, service: str) -> Image | Unknown:
        """The image of a running container."""
        return images.image_of(service)

    def embedder(self, spec: EmbedderSpec) -> Embedder | Unknown:
        """Ask ollama."""
        return services.ask_embedder(spec)

    def reader(self, spec: ReaderServerSpec) -> ReaderServer | Unknown:
        """Ask the model server."""
        return services.ask_reader(spec, self._reader_api_key)

    def reader_counts(self, spec: ReaderServerSpec) -> Mapping[str, float] | Unknown:
        """The model server's own counters."""
        return services.count_requests(spec, self._reader_api_key)

    def reach_of(self, url: str) -> Reach:
        """By name resolution, and by the networks of this process."""
        return reach_of(url)

    def open_to_containers(self, url: str) -> bool:
        """Whether what listens there listens on all addresses of this machine, or is the host of this container."""
        return services.open_to_containers(url)

    def canary(self, settings: CanarySettings) -> CanaryResult | Unknown:
        """Run the compute canary."""
        return run_canary(settings)

    def monotonic_s(self) -> float:
        """CLOCK_MONOTONIC in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
