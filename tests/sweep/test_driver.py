"""Tests what the driver does about failing cells and nodes, with nodes that fail by rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from memarena.sweep import driver as driving
from memarena.sweep.cells import Cell, World
from memarena.sweep.driver import Driver, SweepOutcome, begin
from memarena.sweep.errors import SweepError
from memarena.sweep.executors.base import Ended
from memarena.sweep.manifest import Aside, ManifestWriter, records
from memarena.sweep.placement import Node, Placed
from memarena.sweep.plan import Needs, SweepFile
from memarena.sweep.sealing import Seal
from memarena.sweep.storage import FolderStorage
from memarena.sweep.work import End, Job

WORLD = World("w-1", "key", arguments=("--seed", "1"))
CELLS = tuple(Cell(f"c{n}", WORLD, "bm25", "extractive", "s1", False, Needs(), {}) for n in range(3))
FILE = SweepFile.model_validate(
    {"worlds": [{"preset": "tiny", "seeds": [1]}], "memories": [{"name": "bm25"}], "readers": [{"spec": "extractive"}]}
)
Rule = Callable[[Placed, Job], tuple[End, bool]]


def sealed(placed: Placed, job: Job, sha256: str = "s") -> tuple[End, bool]:
    seal = Seal(cell=placed.cell.name, outcome="complete", message="", wall_s=1.0, machine="", files=(), sha256="")
    return End("sealed", "", seal, sha256), False


class Told:
    """Nodes on which each attempt ends as the rule says."""

    def __init__(self, rule: Rule, nodes: Sequence[Node] = (Node("a", 1), Node("b", 1))) -> None:
        self.rule, self._nodes = rule, list(nodes)
        self._pending: list[tuple[Placed, Job]] = []
        self.forgotten: list[str] = []
        self.released: list[str] = []
        self.cleaned = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def nodes(self) -> Sequence[Node]:
        return self._nodes

    def job(self, placed: Placed, last_attempt: bool) -> Job:
        return Job(placed.cell, Path(), "", last_attempt)

    def start(self, placed: Placed, job: Job) -> None:
        self._pending.append((placed, job))

    def ended(self, timeout_s: float) -> list[Ended]:
        now, self._pending = self._pending, []
        return [Ended(placed, end, by_node) for placed, job in now for end, by_node in [self.rule(placed, job)]]

    def forget(self, placed: Placed, job: Job) -> None:
        self.forgotten.append(placed.cell.name)

    def release(self, placed: Placed) -> None:
        self.released.append(placed.cell.name)

    def stop(self) -> None:
        pass

    def clean(self) -> None:
        self.cleaned += 1


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[ManifestWriter]:
    with ManifestWriter(tmp_path) as writer:
        begin(writer, FILE, CELLS, None)
        yield writer


def drive(manifest: ManifestWriter, folder: Path, where: Told) -> SweepOutcome:
    storage = FolderStorage(folder / "cells")
    return Driver(manifest, where, storage, CELLS, attempts=3, node_faults=2, say=lambda line: None).run()


def test_a_lost_cell_is_sent_again_up_to_a_limit(manifest: ManifestWriter, tmp_path: Path) -> None:
    def rule(placed: Placed, job: Job) -> tuple[End, bool]:
        return (End("lost", "killed"), False) if placed.cell.name == "c1" else sealed(placed, job)

    where = Told(rule)
    outcome = drive(manifest, tmp_path, where)
    assert (outcome.sealed, dict(outcome.given_up), outcome.complete) == (2, {"c1": "killed"}, False)
    assert [lost.attempt for lost in manifest.state.lost["c1"]] == [1, 2, 3]
    assert where.cleaned == 0, "what was lost stays on its node"
    # The same command tries again.
    where = Told(sealed)
    assert drive(manifest, tmp_path, where).complete
    assert (where.forgotten, where.cleaned) == (["c1"], 1)


def test_a_reader_is_released_when_no_cell_of_the_node_needs_it_any_more(tmp_path: Path) -> None:
    cells = tuple(dataclasses.replace(CELLS[n], server=server) for n, server in enumerate("ABA"))
    where = Told(sealed, [Node("a", 1)])
    with ManifestWriter(tmp_path) as manifest:
        begin(manifest, FILE, cells, None)
        storage = FolderStorage(tmp_path / "cells")
        Driver(manifest, where, storage, cells, attempts=1, node_faults=1, say=lambda _: None).run()
    assert where.released == ["c1", "c2"], "after its last cell alone"


def test_a_node_that_fails_twice_is_excluded_and_uses_up_no_attempt_of_a_cell(
    manifest: ManifestWriter, tmp_path: Path
) -> None:
    def rule(placed: Placed, job: Job) -> tuple[End, bool]:
        return (End("disk_full", "disk full"), True) if placed.node.name == "a" else sealed(placed, job)

    assert drive(manifest, tmp_path, Told(rule)).complete
    assert [record.node for record in records(tmp_path) if isinstance(record, Aside)] == ["a"]
    assert sum(len(lost) for lost in manifest.state.lost.values()) == 2


def test_without_a_usable_node_there_is_a_one_line_error(
    manifest: ManifestWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SweepError, match=r"no node is left .put aside: a, b; gone.; the same command"):
        drive(manifest, tmp_path, Told(lambda placed, job: (End("lost", "gone"), True)))
    monkeypatch.setattr(driving, "NODE_WAIT_S", 0.0)
    with pytest.raises(SweepError, match="none is there"):
        drive(manifest, tmp_path, Told(sealed, []))
    with pytest.raises(SweepError, match=r"no node can take c0, which needs 1 cores; nodes: a .0 cores"):
        drive(manifest, tmp_path, Told(sealed, [Node("a", 0)]))


def test_open_questions_are_sealed_as_open_after_the_last_attempt(manifest: ManifestWriter, tmp_path: Path) -> None:
    def rule(placed: Placed, job: Job) -> tuple[End, bool]:
        if placed.cell.name != "c2":
            return sealed(placed, job)
        if not job.last_attempt:
            return End("open", "2 questions left"), False
        end, _ = sealed(placed, job)
        assert end.seal is not None
        return End("sealed", "", end.seal.model_copy(update={"outcome": "incomplete", "message": "2 left"})), False

    outcome = drive(manifest, tmp_path, Told(rule))
    assert (outcome.sealed, dict(outcome.incomplete), outcome.complete) == (3, {"c2": "2 left"}, False)
    assert len(manifest.state.lost["c2"]) == 2


def test_a_node_that_generates_another_world_is_detected(manifest: ManifestWriter, tmp_path: Path) -> None:
    def rule(placed: Placed, job: Job) -> tuple[End, bool]:
        return sealed(placed, job, "other" if placed.cell.name == "c2" else "s")

    outcome = drive(manifest, tmp_path, Told(rule))
    assert outcome.sealed == 2
    assert "world w-1 is other on" in outcome.refused["c2"]


def test_a_cell_delivered_before_a_kill_is_not_run_again(manifest: ManifestWriter, tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path / "cells")
    end, _ = sealed(Placed(CELLS[0], Node("a", 1)), Job(CELLS[0], Path(), ""))
    assert end.seal is not None
    from memarena.sweep.sealing import files_sha256

    storage.bring(tmp_path, end.seal.model_copy(update={"sha256": files_sha256(())}))
    where = Told(sealed)
    assert drive(manifest, tmp_path, where).complete
    assert where.forgotten == ["c1", "c2"]
