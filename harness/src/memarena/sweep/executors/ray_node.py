"""Runs on a node of a Ray cluster: reports the node's facts, carries out a cell's attempt, starts shared readers."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import platform
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memarena.execution.models.model_pool import start_configured
from memarena.execution.models.shared_readers import ReaderHost
from memarena.execution.planning.model_config import ReaderConfig
from memarena.meters.machine import cpu_name
from memarena.sweep.cells import World
from memarena.sweep.executors.ray_connection import MONITOR
from memarena.sweep.storage import Storage
from memarena.sweep.work import End, Job, carry_out, forget, readers_folder, run_folder

PACKAGES = (
    "memarena", "memarena-answering", "memarena-dataset", "memarena-masim", "memarena-proto", "ray", "pydantic",
    "protobuf", "grpcio", "numpy", "scipy",
)  # fmt: skip
"""Packages whose versions must be the same on all nodes."""
_CHUNK_BYTES = 8 << 20
_PARENT_POLL_S = 0.2


@dataclass(frozen=True)
class NodeFacts:
    """Facts that a node reports about itself; the driver leaves out nodes whose versions differ from its own."""

    python: str
    packages: Mapping[str, str]
    machine: str
    scratch: Path
    memory_monitor_off: bool


def node_facts() -> NodeFacts:
    """Return the facts of the node on which this runs."""
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return NodeFacts(
        python=platform.python_version(),
        packages=versions,
        machine=cpu_name(),
        scratch=Path(tempfile.gettempdir()) / f"memarena-sweeps-{os.getuid()}",
        memory_monitor_off=os.environ.get(MONITOR) == "0",
    )


def difference(ours: NodeFacts, theirs: NodeFacts) -> str | None:
    """Return the first version in which a node differs from the driver, in words; None if there is none."""
    if ours.python != theirs.python:
        return f"Python {theirs.python}, here {ours.python}"
    for name in PACKAGES:
        here, there = ours.packages.get(name, "missing"), theirs.packages.get(name, "missing")
        if here != there:
            return f"{name} {there}, here {here}"
    return None


class CellActor:
    """One attempt at one cell, in its own process on its node."""

    def __init__(self, job: Job, storage: Storage | None, world: Sequence[Any], readers: Sequence[Any]) -> None:
        self._job, self._storage, self._world, self._readers = job, storage, world, readers
        self._stop = threading.Event()
        self._raylet = os.getppid()
        # The token gives access to the whole cluster, and a memory is a program of a third party.
        os.environ.pop("RAY_AUTH_TOKEN", None)
        _undo_threads(self._raylet)

    def carry_out(self) -> End:
        """Carry out the cell to its end."""
        return carry_out(
            self._job, self._storage, self._give, self._need, self._stop, lambda: os.getppid() == self._raylet
        )

    def _need(self, config: ReaderConfig) -> None:
        import ray  # noqa: PLC0415 (an extra)

        for host in self._readers:
            # One that is gone notes no reader: the run starts its own.
            with contextlib.suppress(ray.exceptions.RayError):
                ray.get(host.need.remote(config))

    def _give(self, world: World, folder: Path) -> None:
        import ray  # noqa: PLC0415 (an extra)

        (packed,) = ray.get(list(self._world))
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")

    def read(self, name: str, offset: int) -> bytes:
        """Return the bytes of a sealed file from ``offset`` on, at most _CHUNK_BYTES."""
        with (run_folder(self._job) / name).open("rb") as file:
            file.seek(offset)
            return file.read(_CHUNK_BYTES)

    def stop(self) -> None:
        """End the run in order; its log stays."""
        self._stop.set()

    def forget(self) -> None:
        """Remove the cell's folder."""
        forget(self._job)


class ReaderActor:
    """Runs the readers that the cells of a node share, in a process that ends with its raylet or its driver."""

    def __init__(self, scratch: Path) -> None:
        raylet = os.getppid()
        os.environ.pop("RAY_AUTH_TOKEN", None)
        _undo_threads(raylet)
        self._host = ReaderHost(readers_folder(scratch), start_configured)
        threading.Thread(target=self._end_with, args=(raylet,), daemon=True).start()

    def _end_with(self, raylet: int) -> None:
        while os.getppid() == raylet:
            time.sleep(_PARENT_POLL_S)
        self._host.stop()
        os._exit(0)

    def need(self, config: ReaderConfig) -> None:
        """Start a reader unless it runs."""
        self._host.need(config)

    def release(self, config: ReaderConfig) -> None:
        """Stop a reader that no cell of the node uses any more."""
        self._host.release(config)

    def stop(self) -> None:
        """Stop all of them."""
        self._host.stop()


def _undo_threads(raylet: int) -> None:
    """Undo Ray's limit of an actor's threads in numerical libraries; a run outside of Ray has no such limit."""
    import psutil  # noqa: PLC0415

    with contextlib.suppress(psutil.Error):
        if "OMP_NUM_THREADS" not in psutil.Process(raylet).environ():
            os.environ.pop("OMP_NUM_THREADS", None)


def remove_folder(folder: Path) -> None:
    """Remove a folder of a node."""
    shutil.rmtree(folder, ignore_errors=True)
