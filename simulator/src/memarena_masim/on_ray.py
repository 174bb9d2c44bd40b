"""Generates worlds on a Ray cluster: an actor on some node makes each, and its files are copied here in pieces.

A world that is lost with its node is made again elsewhere; Ray itself repeats nothing. What a node made of a world
whose driver was killed stays in its own folder there, and the next call goes on with it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import ipaddress
import logging
import os
import platform
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from memarena_masim.config import WorldConfig
from memarena_masim.engines.offline import OfflineEngine
from memarena_masim.errors import MasimError
from memarena_masim.json_files import dump
from memarena_masim.output.generate import generate

ATTEMPTS = 3
"""How often a world is begun before it is given up."""
PACKAGES = ("memarena-masim", "memarena-dataset", "numpy", "pydantic", "ray")
"""What has to have one version on all nodes: the same seed gives the same bytes."""
_PIECE_BYTES = 8 << 20
_CONNECT_S = 5.0
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file of a world, as its node has it."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WorldJob:
    """A world to be made, and the folder for it on this machine."""

    number: int
    config: WorldConfig
    folder: Path


def versions() -> dict[str, str]:
    """Return the versions on this machine that decide a world's bytes, by package."""
    versions = {"Python": platform.python_version()}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


class WorldActor:
    """One world, in its own process on some node."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = WorldConfig.model_validate(config)
        key = hashlib.sha256(dump(self._config.model_dump(mode="json")).encode()).hexdigest()[:16]
        self._folder = Path(tempfile.gettempdir()) / f"masim-worlds-{os.getuid()}" / key
        os.environ.pop("RAY_AUTH_TOKEN", None)  # opens the whole cluster

    def make(self) -> tuple[dict[str, str], dict[str, int], tuple[MadeFile, ...]]:
        """Make it, or go on with it: this node's versions, questions by family, files."""
        self._folder.mkdir(parents=True, exist_ok=True)
        counts = generate(self._config, self._folder, engine=OfflineEngine(1), progress=lambda _: None)
        paths = sorted(path for path in self._folder.rglob("*") if path.is_file())
        return versions(), counts, tuple(self._made(path) for path in paths)

    def _made(self, path: Path) -> MadeFile:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return MadeFile(path.relative_to(self._folder).as_posix(), path.stat().st_size, digest)

    def read(self, name: str, offset: int) -> bytes:
        """Return the bytes of a file from ``offset`` on, at most _PIECE_BYTES."""
        with (self._folder / name).open("rb") as file:
            file.seek(offset)
            return file.read(_PIECE_BYTES)

    def forget(self) -> None:
        """Remove the world from its node."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            self._folder.parent.rmdir()


def make_on_ray(
    jobs: Sequence[WorldJob],
    address: str | None,
    done: Callable[[WorldJob, dict[str, int]], None],
    say: Callable[[str], None],
) -> None:
    """Make worlds on the nodes of a cluster.

    Args:
        jobs: the worlds; their folders must not be there yet.
        address: HOST:PORT of the head, or ``auto``; None: a Ray of its own on this machine.
        done: called with each world that is here, and its questions by family.
        say: takes lines about worlds that were lost.

    Raises:
        MasimError: one line; worlds that are here stay.
    """
    with _connect(address) as ray:
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting, running = list(jobs), dict[Any, tuple[WorldJob, Any]]()
        lost: dict[int, int] = {}
        while waiting or running:
            while waiting and len(running) < 2 * cores:
                job = waiting.pop(0)
                actor = (
                    ray.remote(WorldActor)
                    .options(num_cpus=1, max_restarts=0, max_task_retries=0)
                    .remote(job.config.model_dump(mode="json"))
                )
                running[actor.make.remote()] = job, actor
            (first,), _ = ray.wait(list(running), num_returns=1)
            job, actor = running.pop(first)
            try:
                theirs, counts, files = ray.get(first)
                _check_versions(theirs)
                _fetch(ray, actor, files, job.folder)
                ray.get(actor.forget.remote())
            except ray.exceptions.RayTaskError as error:
                raise MasimError(f"{job.folder}: its node says: {_line(error)}") from error
            except (ray.exceptions.RayError, _DamagedError) as error:
                lost[job.number] = lost.get(job.number, 0) + 1
                if lost[job.number] >= ATTEMPTS:
                    raise MasimError(f"{job.folder}: given up after {ATTEMPTS} attempts: {_line(error)}") from error
                say(f"{job.folder}: lost, and begun again: {_line(error)}")
                waiting.insert(0, job)
                continue
            finally:
                ray.kill(actor)
            done(job, counts)


class _DamagedError(Exception):
    """A file is not here as its node had it."""


def _fetch(ray: ModuleType, actor: Any, files: Sequence[MadeFile], folder: Path) -> None:
    """Fetch a world's files in pieces; the folder appears only when all hashes are right."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        for made in files:
            path = part / made.name
            path.parent.mkdir(parents=True, exist_ok=True)
            digest, offset = hashlib.sha256(), 0
            with path.open("wb") as file:
                while offset < made.bytes:
                    piece: bytes = ray.get(actor.read.remote(made.name, offset))
                    if not piece:
                        break
                    file.write(piece)
                    digest.update(piece)
                    offset += len(piece)
            if digest.hexdigest() != made.sha256:
                raise _DamagedError(f"{made.name} came here damaged")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _check_versions(theirs: Mapping[str, str]) -> None:
    ours = versions()
    for name in {**ours, **theirs}:
        here, there = ours.get(name, "missing"), theirs.get(name, "missing")
        if here != there:
            raise MasimError(f"--executor ray: a node has {name} {there}, here it is {here}")


@contextmanager
def _connect(address: str | None) -> Iterator[ModuleType]:
    """Yield the module ``ray``, connected to the cluster at ``address`` or, if it is None, to one started here."""
    # Ray reads these when it is imported. Without a token, any client that reaches its ports can run programs there.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    for name, value in (("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0"), ("RAY_USAGE_STATS_ENABLED", "0")):
        os.environ.setdefault(name, value)
    if find_spec("ray") is None or find_spec("grpc") is None:
        raise MasimError("--executor ray: needs Ray", remedy="pip install 'memarena-masim[ray]'")
    if address is None:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(_TOKEN_BYTES))
        where: dict[str, Any] = {"address": "local", "include_dashboard": False}
    else:
        where = {"address": address, "_node_ip_address": _check_cluster(address)}
    import ray  # noqa: PLC0415 (an extra)

    folder = tempfile.mkdtemp(prefix="ms-") if address is None else None  # short: sockets have long names
    try:
        with chdir("/"):  # its workers import from the folder that is the current one now
            ray.init(**where, _temp_dir=folder, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise MasimError(f"--address {address or 'local'}: {_line(error)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _check_cluster(address: str) -> str | None:
    """Check that a cluster answers at ``address``; return its host if it is a loopback address, else None.

    Ray itself waits minutes for a cluster that does not answer.
    """
    host, colon, port = address.rpartition(":")
    token = _token()
    if address != "auto":
        if not (colon and host and port.isdigit()):
            raise MasimError(f"--address {address}: HOST:PORT or auto is expected")
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
        except OSError as error:
            raise MasimError(f"--address {address}: no server answers there: {error.strerror or error}") from error
        _check_token(address, token)
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return host
    return None


def _token() -> str:
    """Return the token of a cluster; "" if RAY_AUTH_MODE switches authentication off."""
    if os.environ["RAY_AUTH_MODE"] != "token":
        return ""
    named = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    token = os.environ.get("RAY_AUTH_TOKEN") or (named.read_text(encoding="utf-8") if named.is_file() else "")
    if not token.strip():
        raise MasimError(f"--executor ray: no token of the cluster: RAY_AUTH_TOKEN is expected, or a file {named}")
    return token.strip()


def _check_token(address: str, token: str) -> None:
    """Ask the head who it is. Ray itself tries a wrong token for 20 s, and prints a line each second."""
    import grpc  # noqa: PLC0415 (comes with the extra)

    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes]
        call = channel.unary_unary("/ray.rpc.NodeInfoGcsService/GetClusterId")
        try:
            call(b"", timeout=_CONNECT_S, metadata=(("authorization", f"Bearer {token}"),) if token else ())
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAUTHENTICATED:
                reason = "the cluster does not take the token of RAY_AUTH_TOKEN or its file"
            else:
                reason = f"what answers there is no head of a Ray cluster ({error.code().name})"
            raise MasimError(f"--address {address}: {reason}") from error


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines and "Error" in lines[-1] else (lines or [type(error).__name__])[0])[:300]
