"""``docker compose up``, literally: in ``compose/`` without options, with every compose that is here.

Needs Docker and the images, so it runs by ``make compose-test`` (MEMARENA_COMPOSE_TEST=1).
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compose.stack import ROOT, compose_programs, docker
from tests.e2e.harnessing import answers, asked, count, times_answered

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.timeout(900),
]
PROGRAMS = compose_programs()
OWNER = 12345 if os.getuid() == 0 else os.getuid()
"""Owner of the checkout; if we may choose (root), a user whom neither machine nor images know."""
TOLD = ("COMPOSE", "MEMARENA_READER", "MEMARENA_LIMIT", "MEMARENA_MEMORY", "MEMARENA_OUT")


@dataclass(frozen=True)
class Checkout:
    """A checkout as a new user has it, with its own compose project and folder."""

    program: list[str]
    project: str
    out: Path

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        usual = {
            name: value for name, value in os.environ.items() if name not in TOLD and not name.startswith("COMPOSE")
        }
        return {**usual, "COMPOSE_PROJECT_NAME": self.project, "MEMARENA_OUT": str(self.out), **more}

    def command(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.program, *arguments],
            cwd=ROOT / "compose",
            env=self.environment(more),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def begin(self, *files: str, **more: str) -> subprocess.Popen[str]:
        """``up`` in a terminal of its own, as far as Ctrl-C is concerned."""
        return subprocess.Popen(
            [*self.program, *files, "up"],
            cwd=ROOT / "compose",
            env=self.environment(more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def container(self, service: str) -> str:
        """One that runs; empty if there is none."""
        labels = (f"com.docker.compose.project={self.project}", f"com.docker.compose.service={service}")
        return docker("ps", "-q", *(part for label in labels for part in ("--filter", f"label={label}"))).strip()

    def exit_code(self) -> str:
        return (self.out / "exit-code").read_text().strip()

    def run(self) -> Path:
        (run,) = self.out.glob("run-*")
        return run

    def running(self) -> str:
        return docker("ps", "-q", "--filter", f"label=com.docker.compose.project={self.project}").strip()


@pytest.fixture(params=PROGRAMS, ids=[" ".join(program) for program in PROGRAMS])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkout]:
    out = tmp_path / "out"
    out.mkdir()
    os.chown(out, OWNER, OWNER if os.getuid() == 0 else os.getgid())
    checkout = Checkout(request.param, f"memarena-test-{secrets.token_hex(4)}", out)
    try:
        yield checkout
    finally:
        files = ("-f", "base.yaml", "-f", "bm25.yaml", "-f", "vanilla.yaml")
        checkout.command(*files, "down", "-v", "--remove-orphans")


@pytest.mark.parametrize("checkout", PROGRAMS[-1:], ids=[" ".join(PROGRAMS[-1])] if PROGRAMS else [], indirect=True)
def test_a_backend_that_is_gone_for_good_interrupts_its_cell_and_up_asks_what_is_left(checkout: Checkout) -> None:
    """``docker kill`` in the middle of its questions; Docker starts nothing again that was ended by hand."""
    files = ("-f", "base.yaml", "-f", "bm25.yaml", "-f", "vanilla.yaml")
    variables = {"MEMARENA_LIMIT": "3", "MEMARENA_HEALTH_S": "2"}
    process = checkout.begin(*files, **variables)
    wait_for(lambda: process.poll() is not None or any(count(run, "asked") > 0 for run in checkout.out.glob("run-*")))
    run = checkout.run()
    first = next(iter(asked(run))).cell_id.partition("@")[0]
    docker("kill", checkout.container(first))
    output, _ = process.communicate(timeout=200)
    assert (process.returncode, checkout.exit_code()) == (1, "3"), output
    ended = asked(run)
    assert {r.status for r in ended if r.cell_id.partition("@")[0] != first} == {"answered"}
    assert sum(r.cell_id.partition("@")[0] != first for r in ended) == 3
    assert not [r for r in ended if r.status == "backend_failed" and not r.lost]

    result = checkout.command(*files, "up", **variables)
    assert (result.returncode, checkout.exit_code()) == (0, "0"), result.stdout + result.stderr
    assert (checkout.run(), len(answers(run))) == (run, 6)
    assert {r.status for r in asked(run) if not r.lost} <= {"answered", "infra_failed"}


def wait_for(what: Callable[[], bool], timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_up_leaves_a_report_and_goes_on_after_ctrl_c(checkout: Checkout) -> None:
    """A real LLM reads, so that there is a middle to stop in."""
    limited = {"MEMARENA_LIMIT": "3"}
    process = checkout.begin(**limited)
    wait_for(lambda: process.poll() is not None or any(count(run, "asked") > 0 for run in checkout.out.glob("run-*")))
    # To the program alone: `docker` passes it on to `compose` itself, and a second one would be taken for a kill.
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=90)
    assert process.returncode in {0, 130}, output
    assert (checkout.exit_code(), checkout.running()) == ("130", ""), output
    run = checkout.run()
    assert 0 < len(times_answered(run)) < 3

    result = checkout.command("up", **limited)
    output = result.stdout + result.stderr
    assert (result.returncode, checkout.exit_code()) == (0, "0"), output
    wait_for(lambda: not checkout.running())
    assert f"going on with {run}" in output
    assert f"report: {run}/report.html" in output
    assert "HTTP Request" not in output
    assert (checkout.run(), len(answers(run)), set(times_answered(run).values())) == (run, 3, {1})
    assert (run / "report.html").exists()
    whose = checkout.out.stat().st_uid, checkout.out.stat().st_gid
    assert whose[0] == OWNER
    assert {(each.lstat().st_uid, each.lstat().st_gid) for each in checkout.out.rglob("*")} == {whose}


def test_up_of_another_memory_that_cannot_run_ends_by_itself_and_not_with_0(checkout: Checkout) -> None:
    """Nothing listens where its reader should be, so the run is over before the backend looks for it."""
    variables = {"MEMARENA_MEMORY": "vanilla", "MEMARENA_READER": "http://127.0.0.1:1/v1"}
    result = checkout.command("up", **variables)
    assert result.returncode == 1, result.stdout + result.stderr
    assert checkout.exit_code() == "2"
    wait_for(lambda: not checkout.running(), 30)
    services = docker(
        "ps", "-a", "--filter", f"label=com.docker.compose.project={checkout.project}", "--format", "{{.Names}}"
    )
    assert {"vanilla", "harness"} <= {word for name in services.split() for word in name.replace("_", "-").split("-")}
    assert "cannot be reached" in checkout.command("logs", "harness", **variables).stdout
