"""Defines the interface to a machine, with all facts that certification needs, so that tests can replace it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from memarena_spark.facts import CanaryResult, Embedder, Gpu, Identity, Image, Memory, ReaderServer, Unknown
from memarena_spark.plans import EmbedderSpec, ReaderServerSpec
from memarena_spark.profiles import CanarySettings
from memarena_spark.watching.addresses import Reach


class Node(Protocol):
    """A machine. A fact that cannot be read is :class:`~memarena_spark.facts.Unknown`; no method raises."""

    def identity(self) -> Identity:
        """Return name, processor, memory, kernel and boot id of the machine."""

    def gpu(self) -> Gpu | Unknown:
        """Return the first GPU."""

    def memory(self) -> Memory | Unknown:
        """Return available memory and swap in use."""

    def free_bytes(self, folder: Path) -> int | Unknown:
        """Return the free bytes where ``folder`` is or will be."""

    def may_not_write(self, folder: Path) -> str:
        """Return why this user cannot write in ``folder``, or create it; empty if they can."""

    def cpu_busy_percent(self) -> float | Unknown:
        """Return the load of all CPUs together over about a second, in percent."""

    def clock_synchronised(self) -> bool | Unknown:
        """Whether the system's clock is synchronised."""

    def on_battery(self) -> bool | Unknown:
        """Whether it runs on a battery; False also if it has none."""

    def governors(self) -> tuple[str, ...] | Unknown:
        """Return the distinct frequency governors of the CPUs."""

    def temperatures(self) -> dict[str, float] | Unknown:
        """Return temperatures in °C by sensor."""

    def packages(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """Return the installed version of each package; None: not installed."""

    def image(self, service: str) -> Image | Unknown:
        """Return the image of a running container, or of ``image:REFERENCE``."""

    def embedder(self, spec: EmbedderSpec) -> Embedder | Unknown:
        """Ask an embedding server about itself, and for an embedding."""

    def reader(self, spec: ReaderServerSpec) -> ReaderServer | Unknown:
        """Ask a model server about itself, and for a few words."""

    def reader_counts(self, spec: ReaderServerSpec) -> Mapping[str, float] | Unknown:
        """Return a model server's counters of requests and tokens since its start; reading them is not counted."""

    def reach_of(self, url: str) -> Reach:
        """Return where a server is: on loopback, in a container on a network of this process, or elsewhere."""

    def open_to_containers(self, url: str) -> bool:
        """Whether a backend in a container reaches this server at an address of the machine, past the gateway."""

    def canary(self, settings: CanarySettings) -> CanaryResult | Unknown:
        """Run the compute canary, in its own process."""

    def monotonic_s(self) -> float:
        """Return the seconds since an arbitrary moment."""

    def sleep(self, seconds: float) -> None:
        """Wait."""
