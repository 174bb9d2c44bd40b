"""Containers of backends, killed and stopped in the middle of an Ingest and of a Search: the same answers and scores.

Needs Docker and the images (``make images``), so it runs by ``make compose-test`` (MEMARENA_COMPOSE_TEST=1).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from memarena.execution.backends.containers import LABEL
from memarena.log.records import IngestDone, Outcome
from memarena.log.store import read_records

from tests.compose.stack import docker
from tests.e2e.harnessing import Key, answers, asked, memarena, namespaces, problems
from tests.e2e.striking import ASKS_MODELS, Striker, once_each, outcomes_of, play, scores_of

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.xdist_group("containers"),
    pytest.mark.timeout(900),
]

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
        docker("pause", self.container())

    def container(self) -> str:
        for each in docker("ps", "-q", "--no-trunc", "--filter", f"label={LABEL}").split():
            (inspected,) = json.loads(docker("inspect", each))
            if str((self.run / "cells").resolve()) in {str(Path(m["Source"]).parents[1]) for m in inspected["Mounts"]}:
                return each
        raise AssertionError(f"no container works in {self.run}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return once_each(tmp_path_factory, spec)


CASES = [(backend, how, "verify") for backend in IMAGES for how in ("kill", "stop")] + [("bm25", "kill", "fresh")]


@pytest.mark.parametrize(("backend", "how", "after_crash"), CASES)
def test_a_container_struck_in_an_ingest_and_in_a_search_costs_no_answer(
    undisturbed: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    how: str,
    after_crash: str,
) -> None:
    whole, out = undisturbed(backend), tmp_path / "run"
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
    undisturbed: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """The container is killed whenever that question is before it."""
    out = tmp_path / "run"
    striker = ContainerStriker(backend in ASKS_MODELS, stubborn=True, run=out)
    play(spec(backend), out, monkeypatch, striker)
    (lost,) = {(r.cell_id, r.instance_id) for r in asked(out) if r.attempt == 1}
    statuses = [r.status for r in asked(out) if (r.cell_id, r.instance_id) == lost]
    assert (striker.struck, statuses) == (3, ["backend_failed", "backend_failed"])
    assert without(lost, answers(out)) == without(lost, answers(undisturbed(backend)))
    assert answers(out)[lost].startswith("(backend_failed: Search: UNAVAILABLE")
    scored = outcomes_of(out)
    assert scored[lost][0] is Outcome.BACKEND_FAILED
    assert without(lost, scored) == without(lost, outcomes_of(undisturbed(backend)))
    printed = memarena("report", out, "--format", "md").stdout
    row = next(line for line in printed.splitlines() if line.startswith("|") and "Search: UNAVAILABLE" in line)
    assert [cell.strip() for cell in row.split("|")][3:6] == ["backend", "1", f"{100 / QUESTIONS:.1f}"]


def without(lost: Key, found: Mapping[Key, object]) -> dict[Key, object]:
    return {key: each for key, each in found.items() if key != lost}
