"""The one door to a machine: everything that certification wants to know of it, so that a test can be the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from memarena_spark.facts import CanaryResult, Embedder, Gpu, Identity, Image, Memory, ReaderServer, Unknown
from memarena_spark.plans import EmbedderSpec, ReaderServerSpec
from memarena_spark.profiles import CanarySettings
from memarena_spark.watching.addresses import Reach


class Node(Protocol):
    """A machine. What cannot be read comes back as :class:`~memarena_spark.facts.Unknown`; nothing here raises."""

    def identity(self) -> Identity:
        """Which machine this is."""

    def gpu(self) -> Gpu | Unknown:
        """The first GPU."""

    def memory(self) -> Memory | Unknown:
        """Memory and swap."""

    def free_bytes(self, folder: Path) -> int | Unknown:
        """Free space where ``folder`` is or will be."""

    def may_not_write(self, folder: Path) -> str:
        """Why this user cannot write in ``folder``, or make it; empty where nothing is in the way."""

    def cpu_busy_percent(self) -> float | Unknown:
        """How busy all CPUs together are, looked at for about a second."""

    def clock_synchronised(self) -> bool | Unknown:
        """Whether the system's clock is held in step with others."""

    def on_battery(self) -> bool | Unknown:
        """Whether it runs on a battery; False also where there is none."""

    def governors(self) -> tuple[str, ...] | Unknown:
        """The CPUs' frequency governors, each named once."""

    def temperatures(self) -> dict[str, float] | Unknown:
        """Sensors in °C."""

    def packages(self, names: Iterable[str]) -> Mapping[str, str | None]:
        """Installed versions; None: not installed."""

    def image(self, service: str) -> Image | Unknown:
        """The image of a running container, or of ``image:REFERENCE``."""

    def embedder(self, spec: EmbedderSpec) -> Embedder | Unknown:
        """Ask an embedding server about itself, and for an embedding."""

    def reader(self, spec: ReaderServerSpec) -> ReaderServer | Unknown:
        """Ask a model server about itself, and for a few words."""

    def reader_counts(self, spec: ReaderServerSpec) -> Mapping[str, float] | Unknown:
        """How much a model server has been asked since it started, by counter; reading them is not counted."""

    def reach_of(self, url: str) -> Reach:
        """Whether a server is on loopback, on a network of containers without a route out, or elsewhere."""

    def open_to_containers(self, url: str) -> bool:
        """Whether a backend in a container reaches this server at an address of the machine, past the gateway."""

    def canary(self, settings: CanarySettings) -> CanaryResult | Unknown:
        """Run the compute canary, in its own process."""

    def monotonic_s(self) -> float:
        """Seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Wait."""
