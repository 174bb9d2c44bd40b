"""Starts a compose project for one test, runs programs inside its containers, and finds compose programs and images.

The programs try what isolation must forbid: to connect to an address, and to write a file. ``python -m
tests.compose.stack`` builds the images that the tests use; it runs before the tests, so that none of them waits for it.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from scripts import backend_folders

ROOT = Path(__file__).parents[2]
BACKENDS = tuple(
    name
    for name, path in backend_folders.compose_files().items()
    if set(yaml.safe_load(path.read_text(encoding="utf-8"))["services"]) == {name, "harness"}
)
"""Backends that need no further server; one that does has its own tests, as memobase in test_memobase.py."""
HELPER_IMAGE = "memarena-backend-bm25"
WAIT_S = 120.0

_PYTHON = ("/opt/venv/bin/python", "-c")
_NODE = ("node", "-e")
_CONNECT = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def attempt(target):
    host, _, port = target.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=4).close()
    except OSError as error:
        return f"refused: {error}"
    return "connected"
with ThreadPoolExecutor(16) as pool:
    print(*pool.map(attempt, sys.argv[1:]), sep="\\n")
"""
_WRITE = """
import errno, sys
try:
    open(sys.argv[1], "w").close()
except OSError as error:
    print("refused:", errno.errorcode[error.errno])
else:
    print("written")
"""
_CONNECT_NODE = """
const attempt = (target) => new Promise((resolve) => {
  const at = target.lastIndexOf(":");
  const [host, port] = [target.slice(0, at), Number(target.slice(at + 1))];
  const socket = require("net").connect({ host, port, timeout: 4000 });
  const end = (word) => { socket.destroy(); resolve(word); };
  socket.on("connect", () => end("connected"));
  socket.on("timeout", () => end("refused: timed out"));
  socket.on("error", (error) => end("refused: " + error.code));
});
Promise.all(process.argv.slice(1).map(attempt)).then((said) => { console.log(said.join("\\n")); process.exit(0); });
"""
_WRITE_NODE = """
try {
  require("fs").writeFileSync(process.argv[1], "");
  console.log("written");
} catch (error) {
  console.log("refused: " + error.code);
}
"""
_PROGRAMS: Mapping[str, Mapping[tuple[str, str], str]] = {
    "connect": {_PYTHON: _CONNECT, _NODE: _CONNECT_NODE},
    "write": {_PYTHON: _WRITE, _NODE: _WRITE_NODE},
}


def compose_program() -> list[str]:
    """Return the command in ``COMPOSE`` if set, as for ``make images``; else docker-compose 1.29 or Compose v2."""
    if command := os.environ.get("COMPOSE"):
        return shlex.split(command)
    return ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]


def compose_programs() -> list[list[str]]:
    """Return every compose program of this machine, that of :func:`compose_program` first."""
    programs = [compose_program()] if os.environ.get("COMPOSE") else []
    programs += [["docker-compose"]] if shutil.which("docker-compose") else []
    if shutil.which("docker"):
        version = subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=60, check=False)
        programs += [["docker", "compose"]] if version.returncode == 0 else []
    return programs


def docker(*arguments: str) -> str:
    """Run docker and return what it printed. AssertionError with its error text if it fails."""
    result = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, f"docker {' '.join(arguments)}: exit {result.returncode}: {result.stderr}"
    return result.stdout


def succeed(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, f"{result.stdout[-2000:]}\n{result.stderr[-2000:]}"


@dataclass(frozen=True)
class Stack:
    """A compose project for one test, which shares nothing with other projects of the machine."""

    project: str
    out: Path
    files: tuple[str, ...] = (
        "compose/base.yaml",
        *(str(backend_folders.compose_files()[name].relative_to(ROOT)) for name in BACKENDS),
    )
    limit: int = 6
    more: tuple[tuple[str, str], ...] = ()
    """Variables in addition to those that every stack gets."""

    def compose(self, *arguments: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        files = [part for name in self.files for part in ("-f", str(ROOT / name))]
        environment = {
            **os.environ,
            "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0"),
            "COMPOSE_DOCKER_CLI_BUILD": os.environ.get("COMPOSE_DOCKER_CLI_BUILD", "0"),
            "MEMARENA_OUT": str(self.out),
            "MEMARENA_READER": "extractive",
            "MEMARENA_LIMIT": str(self.limit),
            **dict(self.more),
        }
        command = [*compose_program(), "-p", self.project, *files, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)

    def container(self, service: str) -> str:
        (name,) = self.compose("ps", "-q", service).stdout.split()
        return name

    def networks(self) -> dict[str, bool]:
        """Networks of the project by the names of the files, and whether they are internal."""
        label = f"label=com.docker.compose.project={self.project}"
        names = docker("network", "ls", "--filter", label, "--format", "{{.Name}}").split()
        inspected = json.loads(docker("network", "inspect", *names)) if names else []
        return {each["Labels"]["com.docker.compose.network"]: each["Internal"] for each in inspected}

    def network(self, service: str) -> tuple[str, str]:
        """Address of the service's container, and of this machine on its network."""
        inspected = json.loads(docker("inspect", self.container(service)))
        (attached,) = inspected[0]["NetworkSettings"]["Networks"].values()
        return attached["IPAddress"], gateway_of(attached["NetworkID"])

    def connect(self, service: str, *targets: tuple[str, int]) -> list[str]:
        """Return for each host and port, as the container sees it, ``connected``, or ``refused:`` and why."""
        return inside(self.container(service), "connect", *(f"{host}:{port}" for host, port in targets)).splitlines()

    def write(self, service: str, path: str) -> str:
        """Return ``written``, or ``refused:`` and the name of the error."""
        return inside(self.container(service), "write", path)

    def probe(self, service: str, port: int) -> int:
        """Return the exit code of the image's own health check, sent to this port instead of the usual one."""
        (inspected,) = json.loads(docker("inspect", self.container(service)))
        form, *command, target = inspected["Config"]["Healthcheck"]["Test"]
        assert (form, target) == ("CMD", "127.0.0.1:50051")
        command = ["docker", "exec", self.container(service), *command, f"127.0.0.1:{port}"]
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode


def inside(container: str, what: str, *arguments: str) -> str:
    """Run one of the programs in a container, in Python or Node, whichever it has; return what it prints."""
    (inspected,) = json.loads(docker("inspect", container))
    interpreter = _NODE if "node" in inspected["Config"]["Entrypoint"] else _PYTHON
    program = _PROGRAMS[what][interpreter]
    return docker("exec", container, *interpreter, program, *arguments).strip()


def gateway_of(network: str) -> str:
    """This machine's address on a network."""
    (pool,) = json.loads(docker("network", "inspect", network))[0]["IPAM"]["Config"]
    return str(pool["Gateway"])


@contextmanager
def listener(*options: str, port: int = 8080) -> Iterator[str]:
    """A container that serves HTTP on a port, until the end."""
    server = ["-m", "http.server", str(port)]
    name = docker("run", "-d", "--rm", *options, "--entrypoint", _PYTHON[0], HELPER_IMAGE, *server).strip()
    try:
        assert inside_until_connected(name, port)
        yield name
    finally:
        docker("rm", "-f", "-v", name)


def inside_until_connected(container: str, port: int) -> bool:
    """Whether the container's port answers within some seconds."""
    return any(inside(container, "connect", f"127.0.0.1:{port}") == "connected" for _ in range(50))


@contextmanager
def open_network() -> Iterator[str]:
    """An ordinary network, from which the world can be reached."""
    name = f"memarena-test-open-{secrets.token_hex(4)}"
    docker("network", "create", name)
    try:
        yield name
    finally:
        docker("network", "rm", name)


@contextmanager
def world() -> Iterator[tuple[str, int]]:
    """Something out there: an address of this machine with a port behind which a container listens.

    It is asked for by the address on a network that no backend is on. Every container with a way out reaches it, as it
    would reach any other machine; no registry or host of the internet has to be there for the test to mean something.
    """
    with open_network() as network, listener("--network", network, "-p", "8080") as name:
        published = docker("port", name, "8080").split()[0]
        yield gateway_of(network), int(published.rpartition(":")[2])


def build_images() -> None:
    """Build the images of harness and backends, and the one that certifies, without torch."""
    own = ("compose/base.yaml", *(str(path.relative_to(ROOT)) for path in backend_folders.compose_files().values()))
    succeed(Stack("memarena-test", ROOT, own).compose("build", "harness", *backend_folders.compose_files()))
    slim = Stack("memarena-test", ROOT, own[:1], more=(("MEMARENA_HARNESS_TAG", "slim"),))
    succeed(slim.compose("build", "harness"))
    network = os.environ.get("MEMARENA_BUILD_NETWORK", "default")
    spark = ["docker", "build", "--network", network, "--build-arg", "TORCH=", "-f", "spark/Dockerfile"]
    classic = {**os.environ, "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")}
    command = [*spark, "-t", "memarena-spark", "."]
    succeed(subprocess.run(command, cwd=ROOT, env=classic, capture_output=True, text=True, timeout=1800, check=False))


if __name__ == "__main__":
    build_images()
