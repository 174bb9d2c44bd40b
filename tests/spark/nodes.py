"""A fake node with the values that a test sets: by default a GB10 without faults; its clock moves only by sleeping.

A *node* is the machine on which a run is certified. The preflight and the guards read it only through this interface,
so that their refusals can be tested on any machine and without waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import ReaderConfig
from memarena_spark.facts import (
    CanaryResult,
    Embedder,
    Gpu,
    GpuProcess,
    Identity,
    Image,
    Memory,
    ReaderServer,
    Unknown,
)
from memarena_spark.plans import EmbedderSpec, Golden, LoadedPlan, Pins, Plan, ReaderServerSpec
from memarena_spark.profiles import CanarySettings, parse_profile, profile_text
from memarena_spark.watching.addresses import Reach

GIB = 2**30
DIGEST = "sha256:" + "ab" * 32
ASKED = 'sglang:http_requests_total{endpoint="/health"}'
FLAGS = {"disable_radix_cache": "True", "version": "0.5.23"}

WELL_IDENTITY = Identity(
    name="spark-1",
    architecture="aarch64",
    cpu_model="Cortex-X925",
    cpu_count=20,
    memory_bytes=119 * GIB,
    kernel="6.11.0-nvidia",
    boot_id="boot",
)
WELL_MEMORY = Memory(available_bytes=50 * GIB, swap_used_bytes=0)
WELL_GPU = Gpu(
    name="NVIDIA GB10",
    driver="580.95.05",
    temperature_c=45.0,
    sm_clock_mhz=2400.0,
    max_sm_clock_mhz=3003.0,
    slowdowns=(),
    processes=(GpuProcess(pid=11, name="python3 -m sglang.launch_server"), GpuProcess(pid=12, name="ollama runner")),
)
WELL_EMBEDDER = Embedder(
    version="0.12", model="bge-m3", size_bytes=1000, vram_bytes=1000, warm_s=0.05, started_at_unix=100.0
)
WELL_READER = ReaderServer(
    kind="sglang", models=("Qwen/Qwen3-0.6B",), details=dict(FLAGS), started_at_unix=200.0, probe_failure=""
)
WELL_CANARY = CanaryResult(
    device="cuda",
    engine="torch",
    dtype="bfloat16",
    size=8192,
    seconds=30,
    windows=30,
    tflops=100.0,
    tflops_low=99.0,
    clock_mhz=2400.0,
)


@dataclass
class FakeNode:
    """Implements :class:`memarena_spark.node.Node`."""

    identity_: Identity = WELL_IDENTITY
    gpu_: Gpu | Unknown = WELL_GPU
    memory_: Memory | Unknown = WELL_MEMORY
    free: int | Unknown = 500 * GIB
    forbidden: str = ""
    """Reason why the output folder cannot be written to; empty if it can."""
    busy: float | Unknown = 3.0
    synchronised: bool | Unknown = True
    battery: bool | Unknown = False
    governors_: tuple[str, ...] | Unknown = ("performance",)
    sensors: dict[str, float] | Unknown = field(default_factory=lambda: {"soc": 50.0, "gpu": 45.0})
    sensors_at: Callable[[float], dict[str, float]] | None = None
    """Temperatures (°C by sensor) at a time in seconds; replaces ``sensors``."""
    installed: Mapping[str, str | None] = field(default_factory=lambda: {"memarena": "0.1.0"})
    images: Mapping[str, Image | Unknown] = field(
        default_factory=lambda: {"sglang": Image(digest=DIGEST, source="docker")}
    )
    embedder_: Embedder | Unknown = WELL_EMBEDDER
    reader_: ReaderServer | Unknown = WELL_READER
    canary_: CanaryResult | Unknown = WELL_CANARY
    counts_at: Callable[[float], dict[str, float]] | Unknown = field(default_factory=lambda: lambda _: {ASKED: 7.0})
    """Request counters of the model server at a time in seconds."""
    open: bool = False
    """Whether its servers can be reached from containers."""
    reach: Reach = "loopback"
    """Where its servers run, as ``reach_of`` returns it."""
    now: float = 0.0

    def identity(self) -> Identity:
        return self.identity_

    def gpu(self) -> Gpu | Unknown:
        return self.gpu_

    def memory(self) -> Memory | Unknown:
        return self.memory_

    def free_bytes(self, folder: Path) -> int | Unknown:
        return self.free

    def may_not_write(self, folder: Path) -> str:
        return self.forbidden

    def cpu_busy_percent(self) -> float | Unknown:
        return self.busy

    def clock_synchronised(self) -> bool | Unknown:
        return self.synchronised

    def on_battery(self) -> bool | Unknown:
        return self.battery

    def governors(self) -> tuple[str, ...] | Unknown:
        return self.governors_

    def temperatures(self) -> dict[str, float] | Unknown:
        return self.sensors_at(self.now) if self.sensors_at is not None else self.sensors

    def packages(self, names: Iterable[str]) -> Mapping[str, str | None]:
        return {name: self.installed.get(name) for name in names}

    def image(self, service: str) -> Image | Unknown:
        return self.images.get(service, Unknown(unknown=f"no container {service}"))

    def embedder(self, spec: EmbedderSpec) -> Embedder | Unknown:
        return self.embedder_

    def reader(self, spec: ReaderServerSpec) -> ReaderServer | Unknown:
        return self.reader_

    def reader_counts(self, spec: ReaderServerSpec) -> Mapping[str, float] | Unknown:
        return self.counts_at(self.now) if callable(self.counts_at) else self.counts_at

    def reach_of(self, url: str) -> Reach:
        return self.reach

    def open_to_containers(self, url: str) -> bool:
        return self.open

    def canary(self, settings: CanarySettings) -> CanaryResult | Unknown:
        return self.canary_

    def monotonic_s(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def spark_plan() -> LoadedPlan:
    """Return a plan for a GB10 with every optional field, under a profile with every limit."""
    text = profile_text("gb10")
    profile = parse_profile(text, "gb10")
    limits = profile.limits.model_copy(update={"max_sm_clock_mhz": 2500.0, "governors": ("performance",)})
    plan = Plan(
        schema=1,
        profile="gb10",
        run=RunConfig(
            dataset=Path("world"), backends=("image:bm25",), readers=(ReaderConfig(spec="http://127.0.0.1:30000/v1"),)
        ),
        embedder=EmbedderSpec(url="http://127.0.0.1:11434", model="bge-m3", container="ollama"),
        reader_server=ReaderServerSpec(
            url="http://127.0.0.1:30000", model="Qwen/Qwen3-0.6B", flags=FLAGS, container="sglang"
        ),
        pins=Pins(
            driver="580.95.05", kernel="6.11.0-nvidia", packages={"memarena": "0.1.0"}, images={"sglang": DIGEST}
        ),
        golden=Golden(tflops=100.0, clock_mhz=2400.0),
    )
    return LoadedPlan(plan=plan, plan_text="", profile=profile.model_copy(update={"limits": limits}), profile_text=text)
