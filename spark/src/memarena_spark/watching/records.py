"""Defines the observations of a run's readers, which are part of the run's record."""

from __future__ import annotations

from typing import Literal

from memarena.log.base import Record

from memarena_spark.facts import Unknown

Role = Literal["listener", "child", "peer"]


class ReaderProcess(Record):
    """A process that answered, a child of it, or a process of this machine that one of them was connected to."""

    pid: int
    started_at_unix: float
    role: Role
    executable: str
    executable_sha256: str | Unknown
    command: tuple[str, ...]
    """Its arguments, without the values of those that are secrets."""


class ModelFiles(Record):
    """A file, or a folder of files, of a model's weights."""

    name: str
    bytes: int
    sha256: str
    """SHA-256 of a file; for a folder, that of the lines that sha256sum(1) prints for its files, ordered by name."""


class ReaderWatch(Record):
    """All observations of a reader, whose processes are inspected (a look) every few seconds."""

    name: str
    base_url: str
    reach: Literal["loopback", "container", "elsewhere"]
    """``container``: in another container, on a network of the run's own container."""
    processes: tuple[ReaderProcess, ...]
    model: tuple[ModelFiles, ...] | Unknown
    """Weights by the files that its processes name or have mapped; Unknown: what the server states of its model."""
    looks: int
    """Number of looks at which its connections could be read; if it is 0, the moments below are 0 too."""
    first_ns: int
    last_ns: int
    """CLOCK_MONOTONIC of the first look (``first_ns``) and of the last."""
    longest_gap_ns: int
    """Longest time between two looks."""
    loopback: int
    """Number of different remote addresses (with port) on loopback to which its processes were connected."""
    elsewhere: tuple[str, ...]
    """All other remote addresses to which they were connected, each with the process."""
    unknown: tuple[str, ...]
    """What could not be inspected, a line each."""


class ReaderWatches(Record):
    """The readers of a run, as the watching process writes them."""

    readers: tuple[ReaderWatch, ...]
