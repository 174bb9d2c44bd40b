"""Decides on which node each cell starts: a pure function of cells and nodes, for local runs, Ray and simulation.

A timed cell is a cell whose times are measured: it has its node to itself, as other work would falsify them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from memarena.sweep.cells import Cell


@dataclass(frozen=True)
class Node:
    """A machine that cells run on."""

    name: str
    cores: int
    gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    machine: str = ""
    """Kind of the machine: processor and accelerators. Times of different kinds are never compared."""
    timed: bool = True
    """Whether it may run timed cells."""


@dataclass(frozen=True)
class Placed:
    """A cell on a node."""

    cell: Cell
    node: Node


def assign_cells(
    waiting: Sequence[Cell],
    nodes: Sequence[Node],
    running: Sequence[Placed],
    machine: str | None = None,
    before: Mapping[str, str] = {},
    servers: Mapping[tuple[str, str], str] = {},
) -> list[Placed]:
    """Return the cells to start now, each with its node, in the order of ``waiting``.

    A timed cell is started on a node on which nothing runs, and nothing else starts there. While timed cells wait for
    such a node, the nodes that fit them get no other cells. A GPU has one reader's server at a time, and keeps it while
    cells wait for it, so that each server starts once.

    Args:
        waiting: cells that were not started yet.
        nodes: the nodes that are available.
        running: the cells that run now.
        machine: the kind of node on which timed cells run; None: any.
        before: by cell, the node that it was sent to last, which may have its log and is preferred.
        servers: by node and number of GPU, the reader's server that was started there last.
    """
    now = list(running)
    loaded = dict(servers)
    waiting_cells = list(waiting)

    def start(cell: Cell, node: Node) -> None:
        now.append(Placed(cell, node))
        waiting_cells.remove(cell)
        if cell.gpu is not None:
            loaded[node.name, cell.gpu] = cell.server

    def kept_for_others(cell: Cell, node: Node) -> bool:
        loaded_server = loaded.get((node.name, cell.gpu)) if cell.gpu is not None else None
        return loaded_server not in (None, cell.server) and any(
            other.server == loaded_server and fits(other, node, ()) for other in waiting_cells
        )

    # Timed cells first: they need an empty node, which other cells would fill.
    timed = [cell for cell in waiting if cell.timed]
    for cell in timed:
        for node in sorted(nodes, key=lambda node: before.get(cell.name) != node.name):
            busy = any(placed.node.name == node.name for placed in now)
            suits = node.timed and machine in (None, node.machine) and fits(cell, node, ())
            if not busy and suits and not kept_for_others(cell, node):
                start(cell, node)
                machine = node.machine
                break
    placed_timed = {placed.cell.name for placed in now}
    waiting_timed = [cell for cell in timed if cell.name not in placed_timed]
    for cell in waiting:
        if cell.timed:
            continue
        if all(_load(node, now) >= 1 for node in nodes):
            break
        for node in sorted(nodes, key=lambda node: (before.get(cell.name) != node.name, _load(node, now))):
            reserved = any(node.timed and fits(wish, node, ()) for wish in waiting_timed)
            if not reserved and fits(cell, node, _on(node, now)) and not kept_for_others(cell, node):
                start(cell, node)
                break
    return now[len(running) :]


def fits(cell: Cell, node: Node, there: Collection[Cell]) -> bool:
    """Whether a node has the resources that a cell needs in addition to the cells that run on it (``there``)."""
    if any(running_cell.timed for running_cell in there) or (cell.timed and (there or not node.timed)):
        return False
    if cell.gpu is not None and any(
        running_cell.gpu == cell.gpu and running_cell.server != cell.server for running_cell in there
    ):
        return False
    needs = [cell.needs, *(running_cell.needs for running_cell in there)]
    return (
        sum(need.cpus for need in needs) <= node.cores
        and sum(need.gpus for need in needs) <= node.gpus
        and all(node.labels.get(name) == value for name, value in cell.needs.labels.items())
        and all(
            sum(need.resources.get(name, 0) for need in needs) <= node.resources.get(name, 0)
            for name in cell.needs.resources
        )
    )


def usual_machine(nodes: Sequence[Node]) -> str | None:
    """Return the kind of most nodes for timed cells, of several the first by name; None if there is no such node."""
    kinds = sorted(node.machine for node in nodes if node.timed)
    return max(kinds, key=kinds.count, default=None)


def _on(node: Node, placed: Sequence[Placed]) -> list[Cell]:
    return [placed_cell.cell for placed_cell in placed if placed_cell.node.name == node.name]


def _load(node: Node, placed: Sequence[Placed]) -> float:
    return sum(cell.needs.cpus for cell in _on(node, placed)) / max(1, node.cores)
