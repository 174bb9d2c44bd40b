"""Tests placement: which node gets which cell, and the estimated duration of a sweep."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.sweep.cells import Cell, World
from memarena.sweep.estimates import Estimator, simulate
from memarena.sweep.manifest import Planned, PlannedCell, Sealed, SweepState
from memarena.sweep.placement import Node, Placed, assign_cells, usual_machine
from memarena.sweep.plan import Needs
from memarena.sweep.sealing import Seal

WORLD = World("w-1", "key")


def cell(name: str, timed: bool = False, **needs: object) -> Cell:
    return Cell(name, WORLD, "bm25", "extractive", "s1", timed, Needs.model_validate(needs), {})


def names(placed: Sequence[Placed]) -> list[tuple[str, str]]:
    return [(placement.cell.name, placement.node.name) for placement in placed]


def test_cells_share_a_node_up_to_its_number_of_cores() -> None:
    nodes = [Node("a", 2), Node("b", 1)]
    placed = assign_cells([cell("1"), cell("2"), cell("3"), cell("4")], nodes, [])
    assert sorted(node for _, node in names(placed)) == ["a", "a", "b"]


def test_a_timed_cell_is_alone_on_its_node() -> None:
    nodes = [Node("a", 4), Node("b", 4, timed=False)]
    running = [Placed(cell("0"), nodes[0])]
    wish = [cell("1", timed=True), cell("2")]
    # A busy node gets no further cells while a timed cell waits for it.
    assert names(assign_cells(wish, nodes, running)) == [("2", "b")]
    assert names(assign_cells(wish, nodes, [])) == [("1", "a"), ("2", "b")]
    assert assign_cells([cell("3"), cell("4", timed=True)], nodes[:1], [Placed(wish[0], nodes[0])]) == []


def test_timed_cells_run_on_one_kind_of_node() -> None:
    nodes = [Node("a", 4, machine="x"), Node("b", 4, machine="y"), Node("c", 4, machine="y")]
    kind = usual_machine(nodes)
    assert kind == "y"
    placed = assign_cells([cell(str(number), timed=True) for number in range(3)], nodes, [], kind)
    assert [node for _, node in names(placed)] == ["b", "c"]


def test_gpus_resources_and_labels_are_respected() -> None:
    nodes = [Node("a", 8, gpus=1, labels={"gpu": "h100"}), Node("b", 8, gpus=2, resources={"licence": 1})]
    assert names(assign_cells([cell("1", gpus=1, labels={"gpu": "h100"})] * 1, nodes, [])) == [("1", "a")]
    assert names(assign_cells([cell("1", gpus=1), cell("2", gpus=2)], nodes, [])) in ([("1", "a"), ("2", "b")],)
    licensed = [cell("1", resources={"licence": 1}), cell("2", resources={"licence": 1})]
    assert names(assign_cells(licensed, nodes, [])) == [("1", "b")]


def test_a_gpu_has_one_server_at_a_time_and_keeps_it_while_cells_wait_for_it() -> None:
    """Two readers with three cells each, interleaved, on two nodes with a GPU: no server starts twice on a node."""
    waiting = [
        dataclasses.replace(cell(f"{number}{server}"), server=server, gpu="0") for number, server in enumerate("ABABAB")
    ]
    waiting.append(dataclasses.replace(cell("other"), server="C", gpu="1"))
    nodes = [Node("n", 2), Node("m", 1)]
    servers: dict[tuple[str, str], str] = {}
    running: list[Placed] = []
    starts: list[tuple[str, str]] = []
    while waiting or running:
        new = assign_cells(waiting, nodes, running, servers=servers)
        for placed in new:
            waiting.remove(placed.cell)
            where = placed.node.name, str(placed.cell.gpu)
            if servers.get(where) != placed.cell.server:
                starts.append((placed.cell.server, placed.node.name))
            servers[where] = placed.cell.server
        running += new
        for node in nodes:
            servers_of_gpu = {
                placement.cell.server
                for placement in running
                if placement.node.name == node.name and placement.cell.gpu == "0"
            }
            assert len(servers_of_gpu) <= 1
        assert running, "something goes on"
        running.pop(0)
    assert len(starts) == len(set(starts))
    assert {server for server, _ in starts} == {"A", "B", "C"}


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=12),
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=4),
)
def test_no_node_is_overbooked_and_timed_cells_run_alone(
    wished: list[tuple[bool, int]], there: list[tuple[int, bool]]
) -> None:
    nodes = [Node(f"n{index}", cores, timed=timed) for index, (cores, timed) in enumerate(there)]
    waiting = [cell(f"c{number}", timed=timed, cpus=cpus) for number, (timed, cpus) in enumerate(wished)]
    running: list[Placed] = []
    for _ in range(3):
        new = assign_cells(waiting, nodes, running)
        running += new
        waiting = [each for each in waiting if each.name not in {placed.cell.name for placed in new}]
        for node in nodes:
            on = [placed.cell for placed in running if placed.node.name == node.name]
            assert sum(each.needs.cpus for each in on) <= node.cores
            assert len(on) == 1 or not any(each.timed for each in on)
            assert node.timed or not any(each.timed for each in on)
        running = running[1:]


def test_a_simulated_sweep_keeps_every_core_busy() -> None:
    cells = [cell(str(number)) for number in range(12)]
    on_one_node, four = (simulate(cells, lambda _: 10.0, [Node(str(n), 1) for n in range(nodes)]) for nodes in (1, 4))
    assert (on_one_node.wall_s, four.wall_s, four.busy_s, four.core_share) == (120.0, 30.0, 120.0, 1.0)
    timed = simulate([cell(str(n), timed=True) for n in range(4)], lambda _: 10.0, [Node("a", 8), Node("b", 8)])
    assert (timed.wall_s, timed.core_share) == (20.0, 1.0)
    with pytest.raises(ValueError, match="no node can take"):
        simulate([cell("1", cpus=3)], lambda _: 1.0, [Node("a", 2)])


def test_estimates_use_the_most_similar_cells() -> None:
    def planned(name: str, world: str, reader: str) -> PlannedCell:
        return PlannedCell(name=name, world=world, memory="bm25", reader=reader, seed="s1", timed=False)

    def sealed(name: str, wall_s: float) -> Sealed:
        seal = Seal(cell=name, outcome="complete", message="", wall_s=wall_s, machine="", files=(), sha256="")
        return Sealed(cell=name, attempt=1, node="n", seal=seal)

    sweep_state = SweepState()
    cells = planned("a", "w-1", "extractive"), planned("b", "w-2", "extractive"), planned("c", "big-1", "extractive")
    sweep_state.take(Planned(title="", plan_sha256="", storage=None, cells=cells))
    for name, wall_s in (("a", 2.0), ("b", 4.0), ("c", 90.0)):
        sweep_state.take(sealed(name, wall_s))
    estimator = Estimator([sweep_state])
    assert estimator.seconds(cell("a")) == 2.0
    assert estimator.seconds(cell("unknown")) == 3.0  # the mean of worlds w-1 and w-2
    unlike_cell = Cell("x", World("other-1", "k"), "bm25", "extractive", "s1", False, Needs(), {})
    assert estimator.seconds(unlike_cell) == 32.0
    assert estimator.seconds(Cell("y", World("w-1", "k"), "bm25", "llm", "s1", False, Needs(), {})) is None
