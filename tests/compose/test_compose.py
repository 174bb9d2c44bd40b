"""The compose files with real containers: healthy, to the contract, shut in, and a whole run that leaves its report.

Needs Docker and minutes, so it runs by ``make compose-test`` (MEMARENA_COMPOSE_TEST=1), not with every ``make test``.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.conformance import result_line, run_suite
from memarena.conformance.suite import Settings

ROOT = Path(__file__).parents[2]
BACKENDS = ("bm25", "memsearch", "vanilla", "oracle", "example_typescript")
PYTHON_BACKENDS = BACKENDS[:4]
WAIT_S = 120.0

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.timeout(1800),
]

CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=4).close()
except OSError as error:
    print("refused:", error)
else:
    print("connected")
"""
WRITE = """
import sys
try:
    open(sys.argv[1], "w").close()
except OSError as error:
    print("refused:", error.strerror)
else:
    print("written")
"""


def compose_program() -> list[str]:
    """``docker-compose`` 1.29 or Compose v2, whichever is there."""
    return ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]


@dataclass(frozen=True)
class Stack:
    """A project of its own: nothing in it is shared with other projects of the machine."""

    project: str
    out: Path

    def compose(self, *arguments: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        files = [part for name in ("base", *BACKENDS) for part in ("-f", str(ROOT / "compose" / f"{name}.yaml"))]
        environment = {
            **os.environ,
            "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0"),
            "COMPOSE_DOCKER_CLI_BUILD": os.environ.get("COMPOSE_DOCKER_CLI_BUILD", "0"),
            "MEMARENA_OUT": str(self.out),
            "MEMARENA_READER": "extractive",
            "MEMARENA_LIMIT": "6",
        }
        command = [*compose_program(), "-p", self.project, *files, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)

    def container(self, service: str) -> str:
        (name,) = self.compose("ps", "-q", service).stdout.split()
        return name

    def inside(self, service: str, program: str, *arguments: str) -> str:
        """What a Python program prints that runs in the service's container."""
        command = ["docker", "exec", self.container(service), "/opt/venv/bin/python", "-c", program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    def network(self, service: str) -> tuple[str, str]:
        """Address of the service's container, and of this machine on its network."""
        inspected = json.loads(docker("inspect", self.container(service)))
        (attached,) = inspected[0]["NetworkSettings"]["Networks"].values()
        address, network = attached["IPAddress"], attached["NetworkID"]
        (pool,) = json.loads(docker("network", "inspect", network))[0]["IPAM"]["Config"]
        return address, pool["Gateway"]


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    out = tmp_path_factory.mktemp("out")
    out.chmod(0o777)
    stack = Stack(f"memarena-test-{secrets.token_hex(4)}", out)
    try:
        succeed(stack.compose("build"))
        succeed(stack.compose("up", "-d", "--no-build", *BACKENDS))
        yield stack
    finally:
        stack.compose("down", "-v", "--remove-orphans")


def succeed(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_keeps_the_contract(stack: Stack, backend: str) -> None:
    """The whole conformance suite, from outside, by the container's address."""
    address, here = stack.network(backend)
    result = run_suite(f"{address}:50051", advertise=here, settings=Settings(start_s=WAIT_S))
    assert [result_line(each) for each in result.results if each.status == "failed"] == []
    assert result.passed


@pytest.mark.parametrize("backend", PYTHON_BACKENDS)
def test_a_container_can_write_its_data_and_nothing_else(stack: Stack, backend: str) -> None:
    assert stack.inside(backend, WRITE, "/data/probe") == "written"
    for path in ("/probe", "/opt/venv/probe", "/etc/probe"):
        assert stack.inside(backend, WRITE, path) == "refused: Read-only file system"


@pytest.mark.parametrize("backend", PYTHON_BACKENDS)
def test_a_container_reaches_neither_the_world_nor_another_backend(stack: Stack, backend: str) -> None:
    """Beside a positive control: the same program connects to where it may."""
    assert stack.inside(backend, CONNECT, "127.0.0.1", "50051") == "connected"
    assert stack.inside(backend, CONNECT, "1.1.1.1", "443").startswith("refused:")
    for other in BACKENDS:
        if other != backend:
            address, _ = stack.network(other)
            assert stack.inside(backend, CONNECT, address, "50051").startswith("refused:")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_has_no_rights_that_it_does_not_need(stack: Stack, backend: str) -> None:
    (inspected,) = json.loads(docker("inspect", stack.container(backend)))
    host = inspected["HostConfig"]
    assert inspected["Config"]["User"] == "memarena"
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert not [mount for mount in inspected["Mounts"] if "docker.sock" in mount["Source"]]


def test_the_harness_runs_a_tiny_world_over_all_of_them_and_leaves_a_report(stack: Stack) -> None:
    done = stack.compose("up", "--no-build", "--exit-code-from", "harness", "harness")
    succeed(done)
    (run,) = stack.out.glob("run-*")
    page = (run / "report.html").read_text(encoding="utf-8")
    answered = rows(run)
    assert set(answered) == set(BACKENDS)
    assert all(outcomes == {"answered"} for outcomes in answered.values()), answered
    assert all(backend in page for backend in BACKENDS)


def rows(run: Path) -> dict[str, set[str]]:
    """How the questions of each backend ended."""
    from memarena.log.records import QuestionAsked
    from memarena.log.store import read_records

    found: dict[str, set[str]] = {}
    for record in read_records(run):
        if isinstance(record, QuestionAsked):
            found.setdefault(record.cell_id.split("@")[0], set()).add(record.status)
    return found


def test_a_harness_without_a_folder_that_it_can_write_says_so(stack: Stack, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    closed = Stack(stack.project, tmp_path)
    done = closed.compose("run", "--rm", "--no-deps", "harness")
    assert done.returncode == 2
    assert "error: /out: user 10001 cannot write there; set MEMARENA_USER" in done.stdout + done.stderr


def test_the_files_suit_every_compose_that_is_here(stack: Stack) -> None:
    programs: list[Sequence[str]] = [compose_program()]
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        programs.append(["docker", "compose"])
    for program in programs:
        for name in BACKENDS:
            files = ["-f", str(ROOT / "compose" / "base.yaml"), "-f", str(ROOT / "compose" / f"{name}.yaml")]
            subprocess.run([*program, *files, "config", "-q"], check=True, timeout=60)
