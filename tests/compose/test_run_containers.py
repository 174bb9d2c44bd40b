"""Backends that the harness starts as containers: shut in, killed and started again, gone when the run is.

They are also killed and stopped in the middle of an Ingest and of a Search: the same answers and scores.

Needs Docker and the images (``make images``), so it runs by ``make compose-test`` (MEMARENA_COMPOSE_TEST=1).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from memarena.execution.backends.containers import LABEL
from memarena.log.records import BackendDescribed, Cell, IngestDone, Outcome, Problem, RunStarted
from memarena.log.store import LogError, read_records

from tests.compose.stack import docker
from tests.e2e.harnessing import (
    EXAMPLE,
    Key,
    answers,
    asked,
    count,
    memarena,
    namespaces,
    problems,
    start,
    wait_until,
)
from tests.e2e.striking import ASKS_MODELS, Striker, once_each, outcomes_of, play, scores_of

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.timeout(900),
]

IMAGE = "image:memarena-backend-bm25"
RUN = ("run", "--dataset", EXAMPLE, "--reader", "extractive", "--floor-samples", "0", "--meter", "none")


def containers() -> set[str]:
    return set(docker("ps", "-q", "--no-trunc", "--filter", f"label={LABEL}").split())


def networks() -> set[str]:
    return set(docker("network", "ls", "-q", "--no-trunc", "--filter", f"label={LABEL}").split())


def running_in(run: Path, before: set[str]) -> str:
    """Return the container that works in a run's folder (not one that only describes itself); empty if none does."""
    for each in containers() - before:
        (inspected,) = json.loads(docker("inspect", each))
        if str(run.resolve()) in {mount["Source"].partition("/cells/")[0] for mount in inspected["Mounts"]}:
            return each
    return ""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, str]:
    """The answers of the same backend as a process."""
    out = tmp_path_factory.mktemp("whole") / "run"
    result = memarena(*RUN, "--backend", "bm25", "--out", out)
    assert result.returncode == 0, result.stderr
    return answers(out)


def test_a_container_answers_like_a_process_and_leaves_nothing_behind(
    undisturbed: dict[Key, str], tmp_path: Path
) -> None:
    before = containers(), networks()
    oracle = "oracle=image:memarena-backend-vanilla-oracle --variant oracle"
    out = tmp_path / "run"
    result = memarena(*RUN, "--backend", f"{IMAGE},{oracle}", "--diagnostic", "oracle", "--out", out, timeout_s=600)
    assert result.returncode == 0, result.stderr
    answers_by_key = answers(out)
    assert {key: answer for key, answer in answers_by_key.items() if key[0].startswith("bm25")} == undisturbed
    assert {r.status for r in asked(out)} == {"answered"}
    assert (containers(), networks()) == before
    assert (out / "cells" / "bm25@extractive-s1" / "backend.log").stat().st_size > 0


def count_days(run: Path) -> int:
    """Days that have come in so far."""
    try:
        return sum(1 for _ in read_records(run, "ingest"))
    except LogError:
        return 0


@pytest.mark.parametrize(("after", "how"), [(0, "kill"), (3, "kill"), (12, "stop")])
def test_a_container_that_is_ended_is_started_again_and_costs_no_question(
    undisturbed: dict[Key, str], tmp_path: Path, after: int, how: str
) -> None:
    """While its days come in, between its first questions, and later; ``docker stop`` as well as SIGKILL."""
    before = containers()
    out = tmp_path / "run"
    process = start(*RUN, "--backend", IMAGE, "--backend-memory", "512m", "--out", out)
    wait_until(lambda: count_days(out) > 0 and count(out, "asked") >= after, process)
    docker(how, running_in(out, before))
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 0, printed
    assert answers(out) == undisturbed
    messages = [r.message for r in read_records(out, "problem") if isinstance(r, Problem)]
    assert any("was started again: exit code" in message for message in messages), messages


def test_a_container_is_shut_in(tmp_path: Path) -> None:
    before, before_networks = containers(), networks()
    out = tmp_path / "run"
    process = start(*RUN, "--backend", IMAGE, "--backend-memory", "512m", "--out", out)
    wait_until(lambda: bool(running_in(out, before)) and count(out, "asked") >= 1, process)
    (inspected,) = json.loads(docker("inspect", running_in(out, before)))
    (network,) = networks() - before_networks
    (inside,) = json.loads(docker("network", "inspect", network))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    host = inspected["HostConfig"]
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])
    assert (host["Memory"], host["MemorySwap"]) == (512 << 20, 512 << 20)
    assert (host["PidsLimit"], host["Tmpfs"]) == (1024, {"/tmp": "size=1g"})
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert [mount["Destination"] for mount in inspected["Mounts"]] == ["/data"]
    assert inspected["Config"]["User"] not in {"", "0", "root"}
    assert inside["Internal"] is True
    assert (containers(), networks()) == (before, before_networks)


SEARCH = """
import os, pathlib
names = [os.path.join(at, name) for at, folders, files in os.walk("/") for name in (*folders, *files)
         if name in ("eval_instances", "run.sqlite", "corpus_sessions.jsonl")]
others = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if path.parent.name != str(os.getpid())]
words = [path.read_bytes() for path in others if path.exists()]
print(names, [word for word in words if b"memarena run" in word.replace(bytes(1), b" ")])
"""
"""What a curious backend would do in its container: look for the gold, the log and the harness, wherever they are."""


def test_a_container_has_no_gold_to_read(tmp_path: Path) -> None:
    before = containers()
    out = tmp_path / "run"
    process = start(*RUN, "--backend", IMAGE, "--out", out)
    try:
        wait_until(lambda: bool(running_in(out, before)) and count(out, "asked") >= 1, process)
        # The run stands still meanwhile: its end would take the container with it.
        process.send_signal(signal.SIGSTOP)
        assert docker("exec", running_in(out, before), "/opt/venv/bin/python", "-c", SEARCH).strip() == "[] []"
    finally:
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=120)
    described = [r for r in read_records(out, "backend_described") if isinstance(r, BackendDescribed)]
    assert {r.isolation for r in described} == {"container"}


def test_containers_do_not_outlive_a_run_that_is_killed(tmp_path: Path) -> None:
    before, before_networks = containers(), networks()
    out = tmp_path / "run"
    process = start(*RUN, "--backend", IMAGE, "--out", out)
    wait_until(lambda: bool(running_in(out, before)) and count(out, "asked") >= 1, process)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while (containers() - before or networks() - before_networks) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert (containers(), networks()) == (before, before_networks)


def test_a_log_says_which_image_a_cell_ran(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = memarena(*RUN, "--backend", IMAGE, "--limit", "1", "--out", out)
    assert result.returncode == 0, result.stderr
    (started,) = [r for r in read_records(out) if isinstance(r, RunStarted)]
    cell: Cell = started.manifest.cells[0]
    expected = docker("image", "inspect", "--format", "{{.Id}}", "memarena-backend-bm25").strip()
    assert (cell.backend_image, cell.backend_image_id) == ("memarena-backend-bm25", expected)


IMAGES = {
    "bm25": "image:memarena-backend-bm25",
    "vanilla": "image:memarena-backend-vanilla-oracle --variant vanilla",
    "memsearch": "image:memarena-backend-memsearch",
    "example_typescript": "image:memarena-backend-example-typescript",
}
QUESTIONS = 6


def spec(backend: str) -> str:
    return f"{backend}={IMAGES[backend]}"


@dataclass
class ContainerStriker(Striker):
    """Ends the container that works in a run's folder, as an operator would: ``docker kill`` or ``docker stop``."""

    run: Path = field(default_factory=Path)
    how: str = "kill"

    def end(self) -> None:
        name = self.container()
        docker(self.how, name)
        # Which of the two the run saw first, the end or the broken call, is not what is tested.
        # One that is there no more has ended, and the run has taken it away already.
        subprocess.run(["docker", "wait", name], capture_output=True, check=False, timeout=60)

    def freeze(self) -> None:
        """Pause the container; on a busy machine its processes may not stop in the time that Docker allows."""
        for tries_left in reversed(range(5)):
            try:
                docker("pause", self.container())
                return
            except AssertionError as error:
                if not tries_left or "unable to freeze" not in str(error):
                    raise

    def container(self) -> str:
        for each in docker("ps", "-q", "--no-trunc", "--filter", f"label={LABEL}").split():
            (inspected,) = json.loads(docker("inspect", each))
            if str((self.run / "cells").resolve()) in {str(Path(m["Source"]).parents[1]) for m in inspected["Mounts"]}:
                return each
        raise AssertionError(f"no container works in {self.run}")


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return once_each(tmp_path_factory, spec)


CASES = [(backend, how, "verify") for backend in IMAGES for how in ("kill", "stop")] + [("bm25", "kill", "fresh")]


@pytest.mark.parametrize(("backend", "how", "after_crash"), CASES)
def test_a_container_struck_in_an_ingest_and_in_a_search_costs_no_answer(
    whole_runs: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    how: str,
    after_crash: str,
) -> None:
    whole, out = whole_runs(backend), tmp_path / "run"
    striker = ContainerStriker(backend in ASKS_MODELS, run=out, how=how)
    play(spec(backend), out, monkeypatch, striker, {"after_crash": after_crash})
    assert striker.struck == 2
    assert answers(out) == answers(whole)
    assert scores_of(out) == scores_of(whole) != []
    restarts = [message for message in problems(out) if "process ended and was started again" in message]
    # One that is told to stop may end what it was doing; what is left of a run as short as this one, too.
    assert len(restarts) == 2 if how == "kill" else restarts, problems(out)
    assert {number for _, number in namespaces(out)} == ({0} if after_crash == "verify" else {0, 1, 2})
    lost = [r for r in asked(out) if r.status != "answered"]
    assert {(r.status, r.attempt) for r in lost} <= {("backend_failed", 0)}, [r.cause for r in lost]
    if how == "kill":
        assert all("exit code 137" in message for message in restarts), restarts
        days = [r for r in read_records(out, "ingest") if isinstance(r, IngestDone)]
        assert [r.code for r in days if r.code != "OK"] in (["UNAVAILABLE"], ["CANCELLED"])
        assert len(lost) == 1


@pytest.mark.parametrize("backend", IMAGES)
def test_a_question_that_is_lost_for_good_is_named_counted_and_costs_no_other(
    whole_runs: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """The container is killed whenever that question is before it."""
    out = tmp_path / "run"
    striker = ContainerStriker(backend in ASKS_MODELS, stubborn=True, run=out)
    play(spec(backend), out, monkeypatch, striker)
    (lost,) = {(r.cell_id, r.instance_id) for r in asked(out) if r.attempt == 1}
    statuses = [r.status for r in asked(out) if (r.cell_id, r.instance_id) == lost]
    assert (striker.struck, statuses) == (3, ["backend_failed", "backend_failed"])
    assert without(lost, answers(out)) == without(lost, answers(whole_runs(backend)))
    assert answers(out)[lost].startswith("(backend_failed: Search: UNAVAILABLE")
    scored = outcomes_of(out)
    assert scored[lost][0] is Outcome.BACKEND_FAILED
    assert without(lost, scored) == without(lost, outcomes_of(whole_runs(backend)))
    printed = memarena("report", out, "--format", "md").stdout
    row = next(line for line in printed.splitlines() if line.startswith("|") and "Search: UNAVAILABLE" in line)
    assert [cell.strip() for cell in row.split("|")][3:6] == ["backend", "1", f"{100 / QUESTIONS:.1f}"]


def without(lost: Key, entries: Mapping[Key, object]) -> dict[Key, object]:
    return {key: each for key, each in entries.items() if key != lost}
