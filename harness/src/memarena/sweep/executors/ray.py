"""Runs cells on a Ray cluster: an actor for each, on a node that the driver has chosen; Ray repeats nothing by itself.

The driver decides what runs where (:mod:`memarena.sweep.placement`) and pins each actor to its node; an actor
reserves Ray's resources only to keep other users of the cluster away. It starts the run under its own guard process, so
that the end of the actor, for whatever cause (its driver, its raylet, Ray itself), ends every process of the run.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from memarena.sweep.cells import Cell
from memarena.sweep.errors import StorageError, SweepError
from memarena.sweep.executors.base import Ended
from memarena.sweep.executors.ray_connection import TIMED, connect, is_listening, summary_line
from memarena.sweep.executors.ray_node import CellActor, NodeFacts, ReaderActor, difference, node_facts, remove_folder
from memarena.sweep.placement import Node, Placed
from memarena.sweep.sealing import Seal
from memarena.sweep.storage import FolderStorage, Storage
from memarena.sweep.work import GRACE_S, End, Job, shared_readers_of

_PROBE_S = 120.0
_READ_S = 120.0
_NODE_DEATH_S = 2.0


@dataclass
class _Attempt:
    placed: Placed
    job: Job
    actor: Any
    ref: Any
    node_id: str


@dataclass
class RayExecutor:
    """Runs cells on a cluster; without an address, on a Ray that it starts on this machine and ends with the sweep."""

    address: str | None
    storage: Storage
    sweep_id: str
    say: Callable[[str], None]
    scratch: Path | None = None
    cores: int | None = None
    """Cores of a Ray that it starts; None: all."""
    gpus: float = 0.0
    _ray: ModuleType = field(init=False)
    _ours: NodeFacts = field(init=False)
    _facts: dict[str, NodeFacts] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)
    """Ray's id of each node, by the node's name in the manifest."""
    _barred: set[str] = field(default_factory=set)
    """Ray's ids of nodes that get no cells: they are dead, or have other versions than the driver."""
    _attempts: list[_Attempt] = field(default_factory=list)
    _sealed: dict[str, _Attempt] = field(default_factory=dict)
    """By cell, the sealed attempt whose actor still runs, until :meth:`forget`."""
    _worlds: dict[str, Any] = field(default_factory=dict)
    _readers: dict[str, Any] = field(default_factory=dict)
    """By Ray's id of a node, the actor that runs the readers which the node's cells share."""
    _folder: str | None = None
    """Folder of a Ray that it started."""
    _first_look: bool = True
    """Whether :meth:`nodes` was not called yet."""

    def __enter__(self) -> RayExecutor:
        """Connect. Raises :class:`SweepError` with one line if it fails."""
        self._ray, self._folder = connect(self.address, self.cores, self.gpus)
        self._ours = node_facts()
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # -------------------------------------------------------------- nodes

    def nodes(self) -> Sequence[Node]:
        """Return the nodes that are alive and have the driver's versions.

        Raises :class:`SweepError` if a node has other versions at the first look; later, such a node is left out.
        """
        alive = [description for description in self._ray.nodes() if description["Alive"]]
        names = [str(description["NodeName"]) for description in alive]
        result = []
        for description, name in zip(alive, names, strict=True):
            node_id = str(description["NodeID"])
            unique = name if names.count(name) == 1 else f"{name}#{node_id[:6]}"
            if node_id not in self._barred and (facts := self._facts_of(node_id, unique)) is not None:
                self._ids[unique] = node_id
                result.append(_node(unique, description, facts))
        self._first_look = False
        return result

    def _facts_of(self, node_id: str, name: str) -> NodeFacts | None:
        """Return a node's facts; None if it is gone, or unlike the driver, which is an error at the first look."""
        if node_id in self._facts:
            return self._facts[node_id]
        try:
            task = self._on(node_facts, node_id, 0)
            facts: NodeFacts = self._ray.get(task.remote(), timeout=_PROBE_S)
            fault = difference(self._ours, facts)
        except self._ray.exceptions.RayError as error:
            if self._is_gone(node_id):
                return None
            fault = f"cannot be used: {summary_line(error)}"
        if fault is not None:
            if self._first_look:
                raise SweepError(f"node {name}: {fault}")
            self._barred.add(node_id)
            self.say(f"node {name} is left out: {fault}")
            return None
        self._facts[node_id] = facts
        return facts

    def _on(self, function: Callable[..., Any], node_id: str, cpus: float) -> Any:
        """Return a function as a task of one node, which Ray does not repeat."""
        return self._ray.remote(function).options(
            num_cpus=cpus, max_retries=0, scheduling_strategy=self._node_strategy(node_id)
        )

    def _node_strategy(self, node_id: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 (an extra)

        return NodeAffinitySchedulingStrategy(node_id, soft=False)

    # -------------------------------------------------------------- cells

    def job(self, placed: Placed, last_attempt: bool) -> Job:
        """Return the instructions for a cell, which runs in the node's own scratch folder."""
        return Job(placed.cell, self._scratch_of(self._ids[placed.node.name]), placed.node.machine, last_attempt)

    def _scratch_of(self, node_id: str) -> Path:
        return (self.scratch or self._facts[node_id].scratch) / self.sweep_id

    def start(self, placed: Placed, job: Job) -> None:
        """Begin a cell."""
        cell, node_id = placed.cell, self._ids[placed.node.name]
        resources = {**cell.needs.resources, **({TIMED: 1} if cell.timed else {})}
        actor = (
            self._ray.remote(CellActor)
            .options(
                num_cpus=placed.node.cores if cell.timed else cell.needs.cpus,
                num_gpus=cell.needs.gpus,
                resources=resources,
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=3,
                scheduling_strategy=self._node_strategy(node_id),
            )
            .remote(
                job,
                None if isinstance(self.storage, FolderStorage) else self.storage,
                self._world_refs(cell),
                self._readers_of(cell, node_id),
            )
        )
        self._attempts.append(_Attempt(placed, job, actor, actor.carry_out.remote(), node_id))

    def _readers_of(self, cell: Cell, node_id: str) -> list[Any]:
        """Return the actor of a node's shared readers, in a list; empty if no reader of the cell may be shared."""
        if not shared_readers_of(cell):
            return []
        if node_id not in self._readers:
            actor = self._ray.remote(ReaderActor).options(
                num_cpus=0, max_restarts=0, max_concurrency=8, scheduling_strategy=self._node_strategy(node_id)
            )
            self._readers[node_id] = actor.remote(self._scratch_of(node_id))
        return [self._readers[node_id]]

    def _world_refs(self, cell: Cell) -> list[Any]:
        """Return the data set of this machine in Ray's store, in a list; empty if the cell's world is generated.

        It is put there once; a node that lacks it fetches it.
        """
        path = cell.world.dataset
        if path is None:
            return []
        if cell.world.key not in self._worlds:
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for file in sorted(path.rglob("*")):
                    if file.is_file():
                        archive.add(file.resolve(), arcname=file.relative_to(path).as_posix())
            self._worlds[cell.world.key] = self._ray.put(packed.getvalue())
        return [self._worlds[cell.world.key]]

    def ended(self, timeout_s: float) -> list[Ended]:
        """Return the attempts that ended, after waiting at most ``timeout_s``; files of sealed cells are fetched."""
        if not self._attempts:
            time.sleep(timeout_s)
            return []
        refs = [attempt.ref for attempt in self._attempts]
        ready_refs, _ = self._ray.wait(refs, num_returns=1, timeout=timeout_s)
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0) if ready_refs else ([], [])
        results = []
        for attempt in [attempt for attempt in self._attempts if attempt.ref in ready]:
            self._attempts.remove(attempt)
            results.append(self._end_of(attempt))
        return results

    def _end_of(self, attempt: _Attempt) -> Ended:
        """Return how an attempt ended; the files of a sealed cell are fetched first."""
        try:
            end: End = self._ray.get(attempt.ref)
            if end.how == "sealed" and end.seal is not None:
                if isinstance(self.storage, FolderStorage):
                    self._fetch(attempt, end.seal, self.storage)
                self._sealed[attempt.placed.cell.name] = attempt
            else:
                self._ray.kill(attempt.actor)
            if end.how == "stopped":  # not by this driver: it saw its raylet die, which Ray may report later
                gone = self._is_gone(attempt.node_id)
                return Ended(attempt.placed, End("lost", _gone(attempt) if gone else "its raylet ended"), by_node=gone)
            return Ended(attempt.placed, end, by_node=end.how == "disk_full")
        except StorageError as error:
            return Ended(attempt.placed, End("storage", str(error)))
        except SweepError as error:  # damaged on its way
            return Ended(attempt.placed, End("lost", str(error)))
        except self._ray.exceptions.RayError as error:
            gone = self._is_gone(attempt.node_id)
            cause = _gone(attempt) if gone else summary_line(error)
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(attempt.actor)
            return Ended(attempt.placed, End("lost", cause), by_node=gone)

    def _fetch(self, attempt: _Attempt, seal: Seal, target: FolderStorage) -> None:
        part = target.part()
        try:
            for file in seal.files:
                (part / file.name).parent.mkdir(parents=True, exist_ok=True)
                with target.refusals(), (part / file.name).open("wb") as copy:
                    for piece in self._pieces(attempt, file.name, file.bytes):
                        copy.write(piece)
            target.keep(part, seal)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _pieces(self, attempt: _Attempt, name: str, size: int) -> Iterator[bytes]:
        offset = 0
        while offset < size:
            piece: bytes = self._ray.get(attempt.actor.read.remote(name, offset), timeout=_READ_S)
            if not piece:
                return  # shorter than it was sealed: the comparison with the seal says so
            offset += len(piece)
            yield piece

    def _is_gone(self, node_id: str) -> bool:
        """Whether a node is dead. Ray's table says so half a minute late, its raylet's port at once."""
        deadline = time.monotonic() + _NODE_DEATH_S
        while time.monotonic() < deadline:
            alive = [node for node in self._ray.nodes() if node["NodeID"] == node_id and node["Alive"]]
            if not alive or not is_listening(str(alive[0]["NodeManagerAddress"]), int(alive[0]["NodeManagerPort"])):
                self._barred.add(node_id)  # one that comes back has another id
                return True
            time.sleep(0.2)
        return False

    def forget(self, placed: Placed, job: Job) -> None:
        """Remove a sealed cell's files from its node, and end its actor."""
        attempt = self._sealed.pop(placed.cell.name)
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.get(attempt.actor.forget.remote(), timeout=_READ_S)
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(attempt.actor)

    def release(self, placed: Placed) -> None:
        """Stop the cell's shared reader on its node."""
        host = self._readers.get(self._ids[placed.node.name])
        if host is None:
            return
        for reader in shared_readers_of(placed.cell):
            # An actor that is gone has taken its readers with it.
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.get(host.release.remote(reader), timeout=GRACE_S)

    def stop(self) -> None:
        """End every cell in order."""
        for attempt in self._attempts:
            attempt.actor.stop.remote()
        if self._attempts:
            self._ray.wait([own.ref for own in self._attempts], num_returns=len(self._attempts), timeout=2 * GRACE_S)
        for attempt in self._attempts:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(attempt.actor)
        self._attempts = []
        for host in self._readers.values():
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.get(host.stop.remote(), timeout=GRACE_S)
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(host)
        self._readers = {}

    def clean(self) -> None:
        """Remove the sweep's folder on every node."""
        for node in self._ray.nodes():
            node_id = str(node["NodeID"])
            if node["Alive"] and node_id in self._facts:
                with contextlib.suppress(self._ray.exceptions.RayError):
                    task = self._on(remove_folder, node_id, 0)
                    self._ray.get(task.remote(self._scratch_of(node_id)), timeout=_PROBE_S)


def _gone(attempt: _Attempt) -> str:
    return f"the node {attempt.placed.node.name} is gone"


def _node(name: str, properties: Mapping[str, Any], facts: NodeFacts) -> Node:
    resources = {str(key): float(value) for key, value in properties["Resources"].items()}
    accelerators = sorted(key for key in resources if key.startswith("accelerator_type:"))
    return Node(
        name=name,
        cores=int(resources.get("CPU", 0)),
        gpus=resources.get("GPU", 0.0),
        resources=resources,
        labels={str(key): str(value) for key, value in properties.get("Labels", {}).items()},
        machine=", ".join((facts.machine, *accelerators)),
        # The monitor kills what takes much memory, which a memory under test may.
        timed=resources.get(TIMED, 0) >= 1 and facts.memory_monitor_off,
    )
