"""Cells on a Ray cluster: an actor for each, on a node that the driver has chosen; Ray repeats nothing by itself.

The driver decides what runs where (:mod:`memarena.sweep.placement`) and pins each actor to its node; what the actor
takes of Ray's resources only keeps other users of the cluster away. An actor starts the run behind a guard of its own,
so that whatever ends the actor (its driver, its raylet, Ray itself) ends every process of the run.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import ipaddress
import math
import os
import platform
import secrets
import shutil
import socket
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc

from memarena.execution.models.model_pool import start_configured
from memarena.execution.models.shared_readers import ReaderHost
from memarena.execution.planning.config import ReaderConfig
from memarena.meters.machine import cpu_name
from memarena.sweep.cells import Cell, World
from memarena.sweep.errors import StorageError, SweepError
from memarena.sweep.executors.base import Ended
from memarena.sweep.placement import Node, Placed
from memarena.sweep.sealing import Seal
from memarena.sweep.storage import FolderStorage, Storage
from memarena.sweep.work import (
    GRACE_S,
    End,
    Job,
    carry_out,
    forget,
    readers_folder,
    run_folder,
    shared_readers_of,
)

TIMED = "timed"
"""Resource that nodes declare which take timed cells."""
MONITOR = "RAY_memory_monitor_refresh_ms"
"""Variable of a node's environment: how often Ray looks whether to kill what takes much memory; 0: never."""
PACKAGES = (
    "memarena", "memarena-answering", "memarena-dataset", "memarena-masim", "memarena-proto", "ray", "pydantic",
    "protobuf", "grpcio", "numpy", "scipy",
)  # fmt: skip
"""What has to have one version on all nodes."""
_CHUNK_BYTES = 8 << 20
_PROBE_S = 120.0
_CONNECT_S = 5.0
_READ_S = 120.0
_NODE_DEATH_S = 2.0
_TOKEN_BYTES = 32
_PARENT_POLL_S = 0.2


@dataclass(frozen=True)
class NodeFacts:
    """What a node says of itself."""

    python: str
    packages: Mapping[str, str]
    machine: str
    scratch: Path
    memory_monitor_off: bool


def node_facts() -> NodeFacts:
    """The facts of the node that this runs on."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return NodeFacts(
        python=platform.python_version(),
        packages=found,
        machine=cpu_name(),
        scratch=Path(tempfile.gettempdir()) / f"memarena-sweeps-{os.getuid()}",
        memory_monitor_off=os.environ.get(MONITOR) == "0",
    )


def difference(ours: NodeFacts, theirs: NodeFacts) -> str | None:
    """The first version in which a node differs from the driver, None if there is none."""
    if ours.python != theirs.python:
        return f"Python {theirs.python}, here {ours.python}"
    for name in PACKAGES:
        here, there = ours.packages.get(name, "missing"), theirs.packages.get(name, "missing")
        if here != there:
            return f"{name} {there}, here {here}"
    return None


class CellActor:
    """One attempt at one cell, in a process of its own on its node."""

    def __init__(self, job: Job, storage: Storage | None, world: Sequence[Any], readers: Sequence[Any]) -> None:
        self._job, self._storage, self._world, self._readers = job, storage, world, readers
        self._stop = threading.Event()
        self._raylet = os.getppid()
        # The token opens the whole cluster, and a memory is somebody else's program.
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
        """A piece of a sealed file."""
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
    """The readers that the cells of a node share, in a process that ends with its raylet or its driver."""

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
        """Have a reader ready."""
        self._host.need(config)

    def stop(self) -> None:
        """Stop all of them."""
        self._host.stop()


def _undo_threads(raylet: int) -> None:
    """Ray limits the threads of numerical libraries to an actor's cores; a run alone has no such limit."""
    import psutil  # noqa: PLC0415

    with contextlib.suppress(psutil.Error):
        if "OMP_NUM_THREADS" not in psutil.Process(raylet).environ():
            os.environ.pop("OMP_NUM_THREADS", None)


def remove_folder(folder: Path) -> None:
    """Remove a folder of a node."""
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class _Attempt:
    placed: Placed
    job: Job
    actor: Any
    ref: Any
    node_id: str


@dataclass
class RayExecutor:
    """The nodes of a cluster; with no address, a Ray of its own on this machine, which ends with the sweep."""

    address: str | None
    storage: Storage
    sweep_id: str
    say: Callable[[str], None]
    scratch: Path | None = None
    cores: int | None = None
    """Of a Ray of its own."""
    gpus: float = 0.0
    _ray: ModuleType = field(init=False)
    _ours: NodeFacts = field(init=False)
    _facts: dict[str, NodeFacts] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)
    """Ray's id of each node by our name."""
    _barred: set[str] = field(default_factory=set)
    _attempts: list[_Attempt] = field(default_factory=list)
    _sealed: dict[str, _Attempt] = field(default_factory=dict)
    _worlds: dict[str, Any] = field(default_factory=dict)
    _readers: dict[str, Any] = field(default_factory=dict)
    """The actor of each node, by Ray's id, that holds the readers which its cells share."""
    _folder: str | None = None
    """Of a Ray of its own."""
    _first_look: bool = True

    def __enter__(self) -> RayExecutor:
        """Connect, and look at every node. Raises :class:`SweepError` with one line where that fails."""
        self._ray, self._folder = _connected(self.address, self.cores, self.gpus)
        self._ours = node_facts()
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # -------------------------------------------------------------- nodes

    def nodes(self) -> Sequence[Node]:
        """The nodes that are alive and have our versions.

        Raises :class:`SweepError` for one that has others, if this is the first look; later ones are left out.
        """
        alive = [told for told in self._ray.nodes() if told["Alive"]]
        names = [str(told["NodeName"]) for told in alive]
        found = []
        for told, name in zip(alive, names, strict=True):
            node_id = str(told["NodeID"])
            unique = name if names.count(name) == 1 else f"{name}#{node_id[:6]}"
            if node_id not in self._barred and (facts := self._looked_at(node_id, unique)) is not None:
                self._ids[unique] = node_id
                found.append(_node(unique, told, facts))
        self._first_look = False
        return found

    def _looked_at(self, node_id: str, name: str) -> NodeFacts | None:
        if node_id in self._facts:
            return self._facts[node_id]
        try:
            there = self._on(node_facts, node_id, 0)
            theirs: NodeFacts = self._ray.get(there.remote(), timeout=_PROBE_S)
            fault = difference(self._ours, theirs)
        except self._ray.exceptions.RayError as error:
            if self._is_gone(node_id):
                return None
            fault = f"cannot be used: {_line(error)}"
        if fault is not None:
            if self._first_look:
                raise SweepError(f"node {name}: {fault}")
            self._barred.add(node_id)
            self.say(f"node {name} is left out: {fault}")
            return None
        self._facts[node_id] = theirs
        return theirs

    def _on(self, function: Callable[..., Any], node_id: str, cpus: float) -> Any:
        """A function as a task of one node, which Ray does not repeat."""
        return self._ray.remote(function).options(
            num_cpus=cpus, max_retries=0, scheduling_strategy=self._pinned(node_id)
        )

    def _pinned(self, node_id: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 (an extra)

        return NodeAffinitySchedulingStrategy(node_id, soft=False)

    # -------------------------------------------------------------- cells

    def job(self, placed: Placed, last_attempt: bool) -> Job:
        """The cell, in the node's own scratch folder."""
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
                scheduling_strategy=self._pinned(node_id),
            )
            .remote(
                job,
                None if isinstance(self.storage, FolderStorage) else self.storage,
                self._packed(cell),
                self._readers_of(cell, node_id),
            )
        )
        self._attempts.append(_Attempt(placed, job, actor, actor.carry_out.remote(), node_id))

    def _readers_of(self, cell: Cell, node_id: str) -> list[Any]:
        """The actor of shared readers on a node, if the cell has one that may be shared."""
        if not shared_readers_of(cell):
            return []
        if node_id not in self._readers:
            actor = self._ray.remote(ReaderActor).options(
                num_cpus=0, max_restarts=0, max_concurrency=8, scheduling_strategy=self._pinned(node_id)
            )
            self._readers[node_id] = actor.remote(self._scratch_of(node_id))
        return [self._readers[node_id]]

    def _packed(self, cell: Cell) -> list[Any]:
        """A data set of this machine in Ray's store, once; a node fetches it where it has none."""
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
        """Attempts that ended since; the files of sealed ones are here."""
        if not self._attempts:
            time.sleep(timeout_s)
            return []
        refs = [attempt.ref for attempt in self._attempts]
        done, _ = self._ray.wait(refs, num_returns=1, timeout=timeout_s)
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0) if done else ([], [])
        found = []
        for attempt in [each for each in self._attempts if each.ref in ready]:
            self._attempts.remove(attempt)
            found.append(self._end_of(attempt))
        return found

    def _end_of(self, attempt: _Attempt) -> Ended:
        try:
            end: End = self._ray.get(attempt.ref)
            if end.how == "sealed" and end.seal is not None:
                if isinstance(self.storage, FolderStorage):
                    self._fetch(attempt, end.seal, self.storage)
                self._sealed[attempt.placed.cell.name] = attempt
            else:
                self._ray.kill(attempt.actor)
            if end.how == "stopped":  # by nobody here: it saw its raylet die, which Ray may tell later
                gone = self._is_gone(attempt.node_id)
                return Ended(attempt.placed, End("lost", _gone(attempt) if gone else "its raylet ended"), by_node=gone)
            return Ended(attempt.placed, end, by_node=end.how == "disk_full")
        except StorageError as error:
            return Ended(attempt.placed, End("storage", str(error)))
        except SweepError as error:  # damaged on its way
            return Ended(attempt.placed, End("lost", str(error)))
        except self._ray.exceptions.RayError as error:
            gone = self._is_gone(attempt.node_id)
            cause = _gone(attempt) if gone else _line(error)
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
            alive = [told for told in self._ray.nodes() if told["NodeID"] == node_id and told["Alive"]]
            if not alive or not _answers(str(alive[0]["NodeManagerAddress"]), int(alive[0]["NodeManagerPort"])):
                self._barred.add(node_id)  # one that comes back has another id
                return True
            time.sleep(0.2)
        return False

    def forget(self, placed: Placed, job: Job) -> None:
        """Remove what a sealed cell left on its node, and end its actor."""
        attempt = self._sealed.pop(placed.cell.name)
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.get(attempt.actor.forget.remote(), timeout=_READ_S)
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(attempt.actor)

    def stop(self) -> None:
        """End every cell in order."""
        for attempt in self._attempts:
            attempt.actor.stop.remote()
        if self._attempts:
            self._ray.wait([each.ref for each in self._attempts], num_returns=len(self._attempts), timeout=2 * GRACE_S)
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
        for told in self._ray.nodes():
            node_id = str(told["NodeID"])
            if told["Alive"] and node_id in self._facts:
                with contextlib.suppress(self._ray.exceptions.RayError):
                    there = self._on(remove_folder, node_id, 0)
                    self._ray.get(there.remote(self._scratch_of(node_id)), timeout=_PROBE_S)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def _gone(attempt: _Attempt) -> str:
    return f"the node {attempt.placed.node.name} is gone"


def _node(name: str, told: Mapping[str, Any], facts: NodeFacts) -> Node:
    resources = {str(key): float(value) for key, value in told["Resources"].items()}
    accelerators = sorted(key for key in resources if key.startswith("accelerator_type:"))
    return Node(
        name=name,
        cores=int(resources.get("CPU", 0)),
        gpus=resources.get("GPU", 0.0),
        resources=resources,
        labels={str(key): str(value) for key, value in told.get("Labels", {}).items()},
        machine=", ".join((facts.machine, *accelerators)),
        # The monitor kills what takes much memory, which a memory under test may.
        timed=resources.get(TIMED, 0) >= 1 and facts.memory_monitor_off,
    )


# ------------------------------------------------------------------ connecting


def _connected(address: str | None, cores: int | None, gpus: float) -> tuple[ModuleType, str | None]:
    """Ray, connected; and the folder of one that was started here."""
    for name, value in (("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0"), ("RAY_USAGE_STATS_ENABLED", "0")):
        os.environ.setdefault(name, value)
    # Whoever reaches a port of Ray can run programs there.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(_TOKEN_BYTES))
        os.environ.setdefault(MONITOR, "0")
    else:
        _check_cluster(address, _token())
    try:
        import ray  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise SweepError("--executor ray: needs Ray: pip install 'memarena[ray]'") from error
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    folder = tempfile.mkdtemp(prefix="ms-") if address is None else None  # short: sockets have long names
    try:
        if address is None:
            own: dict[str, Any] = {
                "num_cpus": cores,
                "num_gpus": math.ceil(gpus),
                "resources": {TIMED: 1},
                "_temp_dir": folder,
            }
            ray.init(address="local", include_dashboard=False, **own, **quiet)
        else:
            ray.init(address=address, _node_ip_address=_loopback(address), **quiet)
    except Exception as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise SweepError(f"--address {address or 'local'}: {_line(error)}") from error
    return ray, folder


def _token() -> str:
    """The token of a cluster; empty where authentication is switched off by name."""
    if os.environ["RAY_AUTH_MODE"] != "token":
        return ""
    named = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    token = os.environ.get("RAY_AUTH_TOKEN") or (named.read_text(encoding="utf-8") if named.is_file() else "")
    if not token.strip():
        raise SweepError(
            f"--executor ray: no token of the cluster: expected RAY_AUTH_TOKEN, or a file {named}; "
            "docs/sweeps.md says how a cluster gets one"
        )
    return token.strip()


def _check_cluster(address: str, token: str) -> None:
    """Ask the head who it is. Ray itself waits minutes for one that is not there, and prints a line each second."""
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit()):
        raise SweepError(f"--address {address}: expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise SweepError(f"--address {address}: nobody answers there: {error.strerror or error}") from error
    answer = _ask(address, token)
    if answer is grpc.StatusCode.UNAUTHENTICATED:
        raise SweepError(f"--address {address}: the cluster does not take the token of RAY_AUTH_TOKEN or its file")
    if answer is not grpc.StatusCode.OK:
        raise SweepError(f"--address {address}: what answers there is no head of a Ray cluster ({answer.name})")
    if token and _ask(address, "") is grpc.StatusCode.OK:
        raise SweepError(
            f"--address {address}: the cluster takes orders from anybody: start its nodes with RAY_AUTH_MODE=token, "
            "or set RAY_AUTH_MODE=disabled here"
        )


def _ask(address: str, token: str) -> grpc.StatusCode:
    """How the head answers to a request without content."""
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes]
        call = channel.unary_unary("/ray.rpc.NodeInfoGcsService/GetClusterId")
        try:
            call(b"", timeout=_CONNECT_S, metadata=(("authorization", f"Bearer {token}"),) if token else ())
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def _loopback(address: str) -> str | None:
    """The address of a node that listens on this machine alone, which Ray would take for another one."""
    host = address.rpartition(":")[0]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return host
    return None


def _line(error: BaseException) -> str:
    """The telling line of one of Ray's messages, which may hold a stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("File ", "Traceback", "ray::", "^"))] or [
        type(error).__name__
    ]
    return (told[0] if len(told) == 1 or "Error" not in told[-1] else told[-1])[:400]
