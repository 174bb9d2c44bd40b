"""Runs cells as processes of this machine: timed ones alone, others as many at once as the cores allow."""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from memarena.execution.models.model_pool import start_configured
from memarena.execution.models.shared_readers import ReaderHost
from memarena.meters.machine import cpu_name
from memarena.sweep.cells import World
from memarena.sweep.executors.base import Ended
from memarena.sweep.placement import Node, Placed
from memarena.sweep.storage import Storage
from memarena.sweep.work import GRACE_S, Job, carry_out, forget, readers_folder, shared_readers_of


class LocalExecutor:
    """One node: this machine. A thread watches over each cell's process."""

    def __init__(self, scratch: Path, storage: Storage, cores: int, gpus: float = 0.0) -> None:
        self._scratch = scratch.absolute()
        self._storage = storage
        self._node = Node("local", cores, gpus, machine=cpu_name())
        self._ended: queue.Queue[Ended] = queue.Queue()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._readers = ReaderHost(readers_folder(self._scratch), start_configured)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def nodes(self) -> Sequence[Node]:
        """Return this machine."""
        return (self._node,)

    def job(self, placed: Placed, last_attempt: bool) -> Job:
        """Return the instructions for a cell, which runs in the scratch folder."""
        return Job(placed.cell, self._scratch, self._node.machine, last_attempt)

    def start(self, placed: Placed, job: Job) -> None:
        """Begin a cell in its own thread."""
        thread = threading.Thread(target=self._carry_out, args=(placed, job), daemon=True)
        self._threads = [running_thread for running_thread in self._threads if running_thread.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _carry_out(self, placed: Placed, job: Job) -> None:
        end = carry_out(job, self._storage, copy_world, self._readers.need, self._stop, lambda: True)
        self._ended.put(Ended(placed, end, by_node=end.how == "disk_full"))

    def ended(self, timeout_s: float) -> list[Ended]:
        """Return the attempts that ended since the last call; wait at most ``timeout_s`` for the first."""
        results: list[Ended] = []
        try:
            results.append(self._ended.get(timeout=timeout_s))
            while True:
                results.append(self._ended.get_nowait())
        except queue.Empty:
            return results

    def forget(self, placed: Placed, job: Job) -> None:
        """Remove the cell's folder."""
        forget(job)

    def release(self, placed: Placed) -> None:
        """Stop the cell's shared reader."""
        for reader in shared_readers_of(placed.cell):
            self._readers.release(reader)

    def stop(self) -> None:
        """End every cell in order."""
        self._stop.set()
        for thread in self._threads:
            thread.join(3 * GRACE_S)
        self._readers.stop()

    def clean(self) -> None:
        """Remove the scratch folder."""
        shutil.rmtree(self._scratch, ignore_errors=True)


def copy_world(world: World, target: Path) -> None:
    """Copy a data set of this machine, so that it stays the same during the sweep."""
    assert world.dataset is not None
    shutil.copytree(world.dataset, target)
