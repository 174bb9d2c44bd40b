"""Starts a backend as a container with the docker SDK: isolated, with resource limits, removed by its id.

A container gets a read-only root, no capability, a network of the run's own from which nothing but this host can be
reached, and one folder to write to: ``data/`` of its cell, so that its days survive a restart as those of a process do.
Docker's socket is mounted nowhere.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memarena.execution.backends.manifests import ContainerBackend
from memarena.execution.backends.process import LaunchError
from memarena.execution.errors import InfraError, RunError
from memarena.log.measuring import MeterFigure
from memarena.meters.cgroups import memory_cgroup_of
from memarena.meters.footprint import Footprint, footprint_of_cgroup
from memarena.meters.readings import MeterError
from memarena.processes import python_module

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

LABEL = "memarena.run"
"""Docker's label of all that a run makes; its value is the run's label."""
DATA_FOLDER = "/data"
"""Folder of a backend's files in its image; apart from /tmp, the only one that a container can write to."""
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 5
_TAIL_LINES = 5
_TAIL_BYTES = 64 << 10
_TMP_SIZE = "1g"
_LOG_SIZE, _LOG_FILES = "16m", "4"
_MAX_LOG_BYTES = 64 << 20
"""Maximum bytes stored of a container's output, from its beginning, if Docker's own rotation does not apply."""


def docker_client() -> DockerClient:
    """Return a client of the Docker that the environment names. Raises :class:`RunError` if it cannot be reached."""
    try:
        import docker  # noqa: PLC0415  (an extra, for those who start containers)
    except ImportError as error:
        raise RunError("--backend image: needs the docker SDK", remedy="install memarena[containers]") from error
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except docker.errors.DockerException as error:
        raise RunError(f"--backend image: Docker cannot be reached: {_one_line(error)}") from error
    return client


@dataclass(frozen=True)
class ImageFacts:
    """Facts of an image that are needed before it is run."""

    image_id: str
    port: int


def image_facts(client: DockerClient, backend: ContainerBackend) -> ImageFacts:
    """Return the facts of a backend's image. Raises RunError if it is not on this machine, or has no single TCP port.

    Nothing is pulled, so that the measured image is the one that the user has.
    """
    import docker  # noqa: PLC0415

    try:
        image = client.images.get(backend.image)
    except docker.errors.ImageNotFound as error:
        raise RunError(
            f"--backend image:{backend.image}: no such image on this machine; docker pull it, or make images"
        ) from error
    except docker.errors.DockerException as error:
        raise RunError(f"--backend image:{backend.image}: {_one_line(error)}") from error
    ports = sorted((image.attrs["Config"].get("ExposedPorts") or {}).keys())
    if len(ports) != 1 or not ports[0].endswith("/tcp"):
        raise RunError(
            f"--backend image:{backend.image}: expected one exposed TCP port, found {', '.join(ports) or 'none'}"
        )
    return ImageFacts(str(image.id), int(ports[0].removesuffix("/tcp")))


@dataclass(frozen=True)
class ContainerLimits:
    """Limits of a backend's container. ``memory`` is in Docker's notation (``4g``) and includes swap."""

    memory: str | None
    pids: int
    cpus: float | None = None
    """None: no limit."""


class ContainerHost:
    """Docker for one run: its network, its containers, and the reaper that removes them if this process is killed.

    Use it as a context manager: leaving it removes everything that it made and nothing else.
    """

    def __init__(self, client: DockerClient, image_ids: Mapping[str, str], limits: ContainerLimits) -> None:
        self._client = client
        self.image_ids = image_ids
        """Id of each backend's image, by the backend's name."""
        self._limits = limits
        self.run_label = secrets.token_hex(6)
        self._network: Any = None
        self._reaper: subprocess.Popen[bytes] | None = None
        self.gateway_host = ""
        """Address of this machine on the network, at which containers reach the gateway."""

    def __enter__(self) -> Self:
        """Make the network. Raises :class:`RunError` if Docker refuses."""
        import docker  # noqa: PLC0415

        self._reaper = subprocess.Popen(
            python_module("memarena.execution.backends.reaper"),
            stdin=subprocess.PIPE,
            # Its own session, so that Ctrl-C in the terminal does not end it before the run has.
            start_new_session=True,
        )
        try:
            self._network = self._client.networks.create(
                f"memarena-{self.run_label}", driver="bridge", internal=True, labels={LABEL: self.run_label}
            )
            self._watch("network", str(self._network.id))
            self._network.reload()
            self.gateway_host = _gateway_of(self._network.attrs)
        except (docker.errors.DockerException, ValueError) as error:
            self.__exit__()
            raise RunError(f"--backend image: no network for containers: {_one_line(error)}") from error
        return self

    def __exit__(self, *_: object) -> None:
        import docker  # noqa: PLC0415

        if self._network is not None:
            with contextlib.suppress(docker.errors.DockerException):  # the reaper tries once more
                self._network.remove()
                self._unwatch("network", str(self._network.id))
            self._network = None
        if self._reaper is not None and self._reaper.stdin is not None:
            self._reaper.stdin.close()
            self._reaper.wait()
            self._reaper = None
        self._client.close()

    def launch(self, backend: ContainerBackend, cell_dir: Path, settings: Mapping[str, str]) -> LaunchedContainer:
        """Start a backend. Raises :class:`LaunchError` if it does not start or gets no address."""
        import docker  # noqa: PLC0415

        # By its id, so that a restart uses the checked image even if its name has moved to another one meanwhile.
        facts = image_facts(self._client, backend.model_copy(update={"image": self.image_ids[backend.name]}))
        data_dir = _data_dir(cell_dir)
        name = f"memarena-{self.run_label}-{secrets.token_hex(3)}"
        try:
            container = self._client.containers.create(
                facts.image_id,
                command=list(backend.args),
                name=name,
                environment=dict(settings),
                labels={LABEL: self.run_label},
                network=str(self._network.id),
                user=None if os.getuid() == 0 else f"{os.getuid()}:{os.getgid()}",
                read_only=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges:true"],
                tmpfs={"/tmp": f"size={_TMP_SIZE}"},  # noqa: S108  (inside the container)
                volumes={str(data_dir.resolve()): {"bind": DATA_FOLDER, "mode": "rw"}},
                mem_limit=self._limits.memory,
                memswap_limit=self._limits.memory,
                nano_cpus=None if self._limits.cpus is None else int(self._limits.cpus * 1e9),
                pids_limit=self._limits.pids,
                log_config=docker.types.LogConfig(
                    type="json-file", config={"max-size": _LOG_SIZE, "max-file": _LOG_FILES}
                ),
                detach=True,
            )
        except docker.errors.DockerException as error:
            raise LaunchError(f"image {backend.image} cannot be run: {_one_line(error)}") from error
        self._watch("container", str(container.id))
        launched_container = LaunchedContainer(self, container, cell_dir, facts.port)
        try:
            container.start()
            launched_container.await_address()
        except docker.errors.DockerException as error:
            launched_container.stop()
            raise LaunchError(f"image {backend.image} cannot be run: {_one_line(error)}") from error
        except LaunchError:
            launched_container.stop()
            raise
        return launched_container

    def unwatch_container(self, container_id: str) -> None:
        """Tell the reaper that a container was removed."""
        self._unwatch("container", container_id)

    def _watch(self, kind: str, identity: str) -> None:
        self._write_to_reaper(f"+ {kind} {identity}\n")

    def _unwatch(self, kind: str, identity: str) -> None:
        self._write_to_reaper(f"- {kind} {identity}\n")

    def _write_to_reaper(self, line: str) -> None:
        if self._reaper is not None and self._reaper.stdin is not None:
            # A run goes on without a reaper that was killed: its containers are removed at the end anyway.
            with contextlib.suppress(BrokenPipeError):
                self._reaper.stdin.write(line.encode())
                self._reaper.stdin.flush()


class LaunchedContainer:
    """A backend's container with the address that it listens on."""

    def __init__(self, host: ContainerHost, container: Container, cell_dir: Path, port: int) -> None:
        self._host = host
        self._container = container
        self._cell_dir = cell_dir
        self._port = port
        self._death = ""
        self.address = ""

    def await_address(self) -> None:
        """Wait until the container has an address. Raises :class:`LaunchError` if it ends before."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            self._container.reload()
            networks = self._container.attrs["NetworkSettings"]["Networks"].values()
            address = next((network["IPAddress"] for network in networks if network["IPAddress"]), "")
            if self._container.status == "running" and address:
                self.address = f"[{address}]:{self._port}" if ":" in address else f"{address}:{self._port}"
                return
            if self._container.status in {"exited", "dead"}:
                raise LaunchError(f"the container did not start: {self.death()}")
            time.sleep(0.02)
        raise LaunchError(f"the container had no address after {_START_TIMEOUT_S:.0f} s: {self._tail()}")

    def alive(self) -> bool:
        """Whether the container still runs. Raises InfraError if Docker does not answer."""
        import docker  # noqa: PLC0415

        try:
            self._container.reload()
        except docker.errors.NotFound:
            self._death = self._death or "the container was removed"
            return False
        except docker.errors.DockerException as error:
            raise InfraError(f"Docker does not say how a container is: {_one_line(error)}") from error
        # Not by its status, which is "paused" while the container is paused.
        return bool(self._container.attrs["State"]["Running"])

    def wait_for_death(self, timeout_s: float) -> bool:
        """Whether the container ends within ``timeout_s``; returns as soon as it does."""
        deadline = time.monotonic() + timeout_s
        while self.alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True

    def death(self) -> str:
        """Return one line on how the container ended, with the last lines of its output."""
        if self._death:
            return self._death
        state = self._container.attrs["State"]
        cause = " (out of memory)" if state.get("OOMKilled") else ""
        return f"exit code {state.get('ExitCode')}{cause}: {self._tail()}"

    def footprint(self) -> Footprint:
        """Return the current memory of its control group and disk use of its data folder."""
        try:
            self._container.reload()
            return footprint_of_cgroup(memory_cgroup_of(self._container.attrs["State"]["Pid"]), self._cell_dir / "data")
        except (MeterError, OSError) as error:
            reason = MeterFigure.unavailable(f"container {self._container.short_id}: {error}")
            return Footprint(reason, reason, reason)

    def stop(self) -> None:
        """End the container, store its output, and remove it. May be called twice."""
        import docker  # noqa: PLC0415

        with contextlib.suppress(docker.errors.NotFound):
            with contextlib.suppress(docker.errors.APIError):  # it has ended already
                self._container.stop(timeout=_STOP_TIMEOUT_S)
            with (self._cell_dir / "backend.log").open("ab") as log:
                for chunk in truncate_output(self._container.logs(stream=True, follow=False), _MAX_LOG_BYTES):
                    log.write(chunk)
            self._container.remove(force=True, v=True)
        self._host.unwatch_container(str(self._container.id))

    def _tail(self) -> str:
        import docker  # noqa: PLC0415

        try:
            chunks = truncate_output(self._container.logs(stream=True, follow=False, tail=_TAIL_LINES), _TAIL_BYTES)
            text = b"".join(chunks).decode("utf-8", "replace")
        except docker.errors.DockerException as error:
            return f"(what it printed cannot be read: {_one_line(error)})"
        return " | ".join(line.strip() for line in text.splitlines() if line.strip())


def truncate_output(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield at most ``max_bytes`` of the chunks, then a line saying that the rest is left out, if there is more."""
    bytes_left = max_bytes
    for chunk in chunks:
        yield chunk[:bytes_left]
        if len(chunk) > bytes_left:
            yield b"\nmemarena: what was printed after this is left out\n"
            return
        bytes_left -= len(chunk)


def _data_dir(cell_dir: Path) -> Path:
    """Create the folder that a container may write to; as root, writable for any user of the image."""
    data_dir = cell_dir / "data"
    data_dir.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        data_dir.chmod(0o777)
    return data_dir


def _gateway_of(attributes: Mapping[str, Any]) -> str:
    """Return this machine's address on a network. Raises ValueError if Docker names none."""
    for pool in attributes["IPAM"]["Config"] or ():
        if pool.get("Gateway"):
            return str(ipaddress.ip_interface(pool["Gateway"]).ip)
    raise ValueError("Docker names no address of this machine on it")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
