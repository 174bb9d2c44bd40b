"""The memobase container before a stand-in for the Memobase server, whose images can only be had from a registry.

Needs Docker, so it runs by ``make compose-test``. The files are those of ``compose/`` with the server replaced.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.conformance import result_line, run_suite
from memarena.conformance.suite import Settings

from tests.compose.test_compose import CONNECT, ROOT, WAIT_S, WRITE, Stack, compose_program, docker, rows, succeed

FILES = ("compose/base.yaml", "compose/memobase.yaml", "tests/compose/memobase-double.yaml")

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.timeout(1800),
]


@dataclass(frozen=True)
class MemobaseStack(Stack):
    """``models``: ``--scripted`` where the stand-in has models of its own; it asks the gateway by default."""

    models: str = ""

    def compose(self, *arguments: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        files = [part for name in FILES for part in ("-f", str(ROOT / name))]
        environment = {
            **os.environ,
            "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0"),
            "COMPOSE_DOCKER_CLI_BUILD": os.environ.get("COMPOSE_DOCKER_CLI_BUILD", "0"),
            "MEMARENA_OUT": str(self.out),
            "MEMARENA_READER": "extractive",
            "MEMARENA_LIMIT": "4",
            **({"DOUBLE_MODELS": self.models} if self.models else {}),
        }
        command = [*compose_program(), "-p", self.project, *files, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemobaseStack]:
    out = tmp_path_factory.mktemp("out")
    out.chmod(0o777)
    stack = MemobaseStack(f"memarena-test-{secrets.token_hex(4)}", out, models="--scripted")
    try:
        succeed(stack.compose("build", "memobase", "harness"))
        succeed(stack.compose("up", "-d", "--no-build", "--no-deps", "memobase-server", "memobase"))
        yield stack
    finally:
        stack.compose("down", "-v", "--remove-orphans")


def test_the_container_keeps_the_contract(stack: MemobaseStack) -> None:
    address, here = stack.network("memobase")
    result = run_suite(f"{address}:50051", advertise=here, settings=Settings(start_s=WAIT_S))
    assert [result_line(each) for each in result.results if each.status == "failed"] == []
    assert result.passed


def test_the_container_is_shut_in(stack: MemobaseStack) -> None:
    """Beside positive controls: it reaches its server, and writes its data."""
    assert stack.inside("memobase", WRITE, "/data/probe") == "written"
    for path in ("/probe", "/opt/venv/probe", "/etc/probe"):
        assert stack.inside("memobase", WRITE, path) == "refused: Read-only file system"
    assert stack.inside("memobase", CONNECT, "memobase-server", "8000") == "connected"
    assert stack.inside("memobase", CONNECT, "1.1.1.1", "443").startswith("refused:")
    assert stack.inside("memobase", CONNECT, "memobase-db", "5432").startswith("refused:")
    (inspected,) = json.loads(docker("inspect", stack.container("memobase")))
    host = inspected["HostConfig"]
    assert inspected["Config"]["User"] == "memarena"
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])


def test_the_harness_runs_a_tiny_world_whose_extraction_passes_its_gateway(stack: MemobaseStack) -> None:
    asking = MemobaseStack(stack.project, stack.out)
    succeed(asking.compose("up", "-d", "--no-build", "--no-deps", "memobase-server"))
    succeed(asking.compose("run", "--rm", "--no-deps", "--use-aliases", "harness"))
    (run,) = stack.out.glob("run-*")
    assert rows(run) == {"memobase": {"answered"}}
    assert extracting_calls(run) > 10
    assert "memobase" in (run / "report.html").read_text(encoding="utf-8")


def extracting_calls(run: Path) -> int:
    from memarena.log.records import GatewayCall
    from memarena.log.store import read_records

    calls = [call for call in read_records(run, "gateway_call") if isinstance(call, GatewayCall)]
    return sum(call.phase == "ingest" and call.inferred and call.route == "/v1/chat/completions" for call in calls)
