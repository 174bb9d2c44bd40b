"""Defines records of the facts of a node, and ``Unknown`` with the reason if a fact cannot be read."""

from __future__ import annotations

from memarena.log.base import Record


class Unknown(Record):
    """A fact that the machine did not give. Never taken for a good one."""

    unknown: str


class Identity(Record):
    """Which machine this is."""

    name: str
    architecture: str
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    kernel: str
    boot_id: str


class GpuProcess(Record):
    """A process that holds the GPU; ``name`` is its command line's first words, empty if it cannot be read."""

    pid: int
    name: str


class Gpu(Record):
    """The GPU as its driver describes it."""

    name: str
    driver: str
    temperature_c: float | Unknown
    sm_clock_mhz: float | Unknown
    max_sm_clock_mhz: float | Unknown
    slowdowns: tuple[str, ...] | Unknown
    """Reasons for a lowered clock that are active now, idleness left out."""
    processes: tuple[GpuProcess, ...] | Unknown


class Memory(Record):
    """Memory and swap of the whole machine."""

    available_bytes: int
    swap_used_bytes: int


class Image(Record):
    """The image behind a service."""

    digest: str
    source: str
    """``docker`` where the daemon was asked, ``declared`` where the compose file's own variable says it."""


class DeclaredOrder(Record):
    """A server's index in the order of starting, as the compose file's own variable declares it."""

    place: int  # words: a name of the file format


class Embedder(Record):
    """An ollama server and its embedding model."""

    version: str
    model: str
    size_bytes: int
    vram_bytes: int
    """How much of the model is on the GPU."""
    warm_s: float
    """Seconds that an embedding took when the model had just been used."""
    started_at_unix: float | DeclaredOrder | Unknown
    """When the server was started, in seconds since 1970, or its declared place where no time can be read."""


class ReaderServer(Record):
    """A model server as it describes itself."""

    kind: str
    """``sglang``, ``llama.cpp`` or ``other``."""
    models: tuple[str, ...]
    details: dict[str, str]
    """Version and flags, as read back."""
    started_at_unix: float | DeclaredOrder | Unknown
    """As an embedder's."""
    probe_failure: str
    """Why the sanity probe failed; empty if it passed."""


class CanaryResult(Record):
    """A matrix multiplication over and over, in windows of about a second."""

    device: str
    engine: str
    """What multiplied, with its version."""
    dtype: str
    size: int
    """Rows and columns of both matrices."""
    seconds: float
    windows: int
    tflops: float
    """Median over the windows: 10^12 floating-point operations a second."""
    tflops_low: float
    """The slowest window."""
    clock_mhz: float | Unknown
    """Median clock of the processor that multiplied."""
