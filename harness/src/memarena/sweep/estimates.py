"""Estimates how long cells take, from sealed cells like them, and how long a sweep would take on some nodes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from memarena.sweep.cells import Cell
from memarena.sweep.manifest import PlannedCell, SweepState
from memarena.sweep.placement import Node, Placed, assign_cells, fits, usual_machine

_Like = Callable[[Cell | PlannedCell], object]
_KINDS: tuple[_Like, ...] = (
    lambda cell: cell.name,
    lambda cell: (_size(cell), cell.memory, cell.reader, cell.timed),
    lambda cell: (cell.memory, cell.reader),
    lambda cell: cell.reader,
)
"""Keys of likeness, the closest first: cells with the same key are expected to take the same time."""


class Estimator:
    """Estimates the seconds of a cell from the sealed cells that are most like it."""

    def __init__(self, states: Iterable[SweepState]) -> None:
        self._known: list[dict[object, list[float]]] = [{} for _ in _KINDS]
        for state in states:
            if state.planned is None:
                continue
            planned = {cell.name: cell for cell in state.planned.cells}
            for name, sealed in state.sealed.items():
                if name in planned:
                    for by_kind, like in zip(self._known, _KINDS, strict=True):
                        by_kind.setdefault(like(planned[name]), []).append(sealed.seal.wall_s)

    def seconds(self, cell: Cell) -> float | None:
        """Return the mean seconds of the sealed cells that are most like ``cell``; None if none is like it."""
        for by_kind, like in zip(self._known, _KINDS, strict=True):
            if seconds := by_kind.get(like(cell)):
                return fmean(seconds)
        return None


@dataclass(frozen=True)
class Schedule:
    """The result of a simulated sweep."""

    nodes: int
    wall_s: float
    busy_s: float
    """Sum of the cells' seconds."""
    core_share: float
    """Share of the nodes' cores that cells used, over the whole time."""


def simulate(cells: Sequence[Cell], seconds: Callable[[Cell], float], nodes: Sequence[Node]) -> Schedule:
    """Simulate a sweep: place cells by the driver's own rules, without running them.

    ``seconds`` gives the time of each cell. Raises ValueError for a cell that no node can take.
    """
    waiting = sorted(cells, key=lambda cell: -seconds(cell))
    if any(not any(fits(cell, node, ()) for node in nodes) for cell in waiting):
        raise ValueError("no node can take some cell")
    running: list[Placed] = []
    ends: list[tuple[float, int, Placed]] = []
    now, core_seconds, number = 0.0, 0.0, 0
    machine = usual_machine(nodes)
    while waiting or ends:
        for placed in assign_cells(waiting, nodes, running, machine):
            waiting.remove(placed.cell)
            running.append(placed)
            number += 1
            lasts = seconds(placed.cell)
            core_seconds += lasts * (placed.node.cores if placed.cell.timed else placed.cell.needs.cpus)
            heapq.heappush(ends, (now + lasts, number, placed))
        now, _, finished = heapq.heappop(ends)
        running.remove(finished)
    cores = sum(node.cores for node in nodes)
    busy = sum(seconds(cell) for cell in cells)
    return Schedule(len(nodes), now, busy, core_seconds / (cores * now) if now else 0.0)


def _size(cell: Cell | PlannedCell) -> str:
    """Return the name of the world without its seed: ``tiny`` for both tiny-7 and tiny-8."""
    world = cell.world if isinstance(cell, PlannedCell) else cell.world.name
    head, dash, seed = world.rpartition("-")
    return head if dash and seed.isdigit() else world
