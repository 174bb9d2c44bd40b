"""Defines records of the facts of a node, and ``Unknown`` with the reason if a fact cannot be read."""

from __future__ import annotations

from memarena.log.base import Record


class Unknown(Record):
    """A fact that could not be read, with the reason. A check that needs the fact refuses the run."""

    unknown: str


class Identity(Record):
    """The machine: its name, processor, memory, kernel and boot."""

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
    """Origin of the digest: ``docker`` (the daemon), or ``declared`` (a variable of the compose file)."""


class DeclaredOrder(Record):
    """A server's index in the order of starting, as the compose file's own variable declares it."""

    place: int  # words: a name of the file format


class Embedder(Record):
    """An ollama server and its embedding model."""

    version: str
    model: str
    size_bytes: int
    vram_bytes: int
    """Bytes of the model that are on the GPU: all of it if equal to ``size_bytes``."""
    warm_s: float
    """Seconds of an embedding by a model that was used just before."""
    started_at_unix: float | DeclaredOrder | Unknown
    """When the server was started, in seconds since 1970; its declared order if no time can be read."""


class ReaderServer(Record):
    """A model server as it describes itself."""

    kind: str
    """``sglang``, ``llama.cpp`` or ``other``."""
    models: tuple[str, ...]
    details: dict[str, str]
    """Version and flags, as read back."""
    started_at_unix: float | DeclaredOrder | Unknown
    """When the server was started, as in :class:`Embedder`."""
    probe_failure: str
    """Why the sanity probe failed; empty if it passed."""


class CanaryResult(Record):
    """Speed of the compute canary: a fixed matrix multiplication, repeated in windows of about a second.

    A node that is in a slow state which none of its counters shows has a slow canary.
    """

    device: str
    engine: str
    """Library that multiplied, with its version."""
    dtype: str
    size: int
    """Rows and columns of both matrices."""
    seconds: float
    windows: int
    tflops: float
    """Median over the windows: 10^12 floating-point operations a second."""
    tflops_low: float
    """TFLOP/s of the slowest window."""
    clock_mhz: float | Unknown
    """Median clock of the processor that multiplied."""
