"""The memobase container before a stand-in for the Memobase server, whose images can only be had from a registry.

Needs Docker, so it runs by ``make compose-test``. The files are those of ``compose/`` with the server replaced.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena.conformance import result_line, run_suite
from memarena.conformance.suite import Settings

from tests.compose.stack import WAIT_S, Stack, docker, inside, listener, open_network, succeed, world
from tests.compose.test_compose import outcomes_by_backend

FILES = ("compose/base.yaml", "compose/memobase.yaml", "tests/compose/memobase-double.yaml")

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.timeout(1800),
]


def memobase_stack(project: str, out: Path, models: str = "") -> Stack:
    """``models``: ``--scripted`` where the stand-in has models of its own; it asks the gateway by default."""
    return Stack(project, out, FILES, limit=4, more=(("DOUBLE_MODELS", models),) if models else ())


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    out = tmp_path_factory.mktemp("out")
    out.chmod(0o777)
    stack = memobase_stack(f"memarena-test-{secrets.token_hex(4)}", out, models="--scripted")
    try:
        succeed(stack.compose("up", "-d", "--no-build", "--no-deps", "memobase-server", "memobase"))
        yield stack
    finally:
        stack.compose("down", "-v", "--remove-orphans")


def test_the_container_keeps_the_contract(stack: Stack) -> None:
    address, here = stack.network("memobase")
    result = run_suite(f"{address}:50051", advertise=here, settings=Settings(start_s=WAIT_S, timeout_s=120))
    assert [result_line(each) for each in result.results if each.status == "failed"] == []
    assert result.passed


def test_the_container_is_shut_in(stack: Stack) -> None:
    """Controls: it does reach its server, and does write its data."""
    assert stack.write("memobase", "/data/probe") == "written"
    for path in ("/probe", "/opt/venv/probe", "/etc/probe"):
        assert stack.write("memobase", path) == "refused: EROFS"
    assert stack.connect("memobase", ("memobase-server", 8000)) == ["connected"]
    assert stack.networks()["memobase"] is True
    with world() as (host, port), open_network() as network:
        with listener("--network", network) as ordinary:
            assert inside(ordinary, "connect", f"{host}:{port}") == "connected"
        (outcome,) = stack.connect("memobase", (host, port))
        assert outcome.startswith("refused:")
    (inspected,) = json.loads(docker("inspect", stack.container("memobase")))
    host = inspected["HostConfig"]
    assert inspected["Config"]["User"] == "memarena"
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])


def test_the_container_does_not_reach_the_stores_of_its_server(stack: Stack) -> None:
    """With something that listens in the place of the database, on the network that only the server is on."""
    network = f"{stack.project}_memobase-store"
    with listener("--network", network, "--network-alias", "memobase-db", port=5432) as store:
        (attached,) = json.loads(docker("inspect", store))[0]["NetworkSettings"]["Networks"].values()
        assert stack.connect("memobase-server", ("memobase-db", 5432)) == ["connected"]
        outcomes = stack.connect("memobase", ("memobase-db", 5432), (attached["IPAddress"], 5432))
        assert [each.startswith("refused:") for each in outcomes] == [True, True]


def test_the_health_check_tells_a_backend_that_serves_from_a_closed_port(stack: Stack) -> None:
    address, here = stack.network("memobase")
    assert run_suite(f"{address}:50051", advertise=here, only=["hlt.serving"], settings=Settings(start_s=WAIT_S)).passed
    assert stack.probe("memobase", 50051) == 0
    assert stack.probe("memobase", 50052) != 0


def test_the_harness_runs_a_tiny_world_whose_extraction_passes_its_gateway(stack: Stack) -> None:
    asking = memobase_stack(stack.project, stack.out)
    succeed(asking.compose("up", "-d", "--no-build", "--no-deps", "memobase-server"))
    succeed(asking.compose("run", "--rm", "--no-deps", "--use-aliases", "harness"))
    (run,) = stack.out.glob("run-*")
    assert outcomes_by_backend(run) == {"memobase": {"answered"}}
    assert extracting_calls(run) > 10
    assert "memobase" in (run / "report.html").read_text(encoding="utf-8")


def extracting_calls(run: Path) -> int:
    from memarena.log.records import GatewayCall
    from memarena.log.store import read_records

    calls = [call for call in read_records(run, "gateway_call") if isinstance(call, GatewayCall)]
    return sum(call.phase == "ingest" and call.inferred and call.route == "/v1/chat/completions" for call in calls)
