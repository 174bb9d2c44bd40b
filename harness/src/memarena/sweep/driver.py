"""Drives a sweep: sends cells to nodes, sends lost ones again, and records in the manifest which cells are sealed.

A cell is lost if its node or process dies, or if it ends with questions left open; refused, if its input is bad. A node
with too many faults is put aside and gets no further cells.
"""

from __future__ import annotations

import importlib.metadata
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memarena.sweep.cells import Cell, plan_sha256
from memarena.sweep.errors import StorageError, SweepError
from memarena.sweep.executors.base import Ended, Executor
from memarena.sweep.manifest import (
    Aside,
    Begun,
    Lost,
    ManifestWriter,
    Planned,
    PlannedCell,
    Refused,
    Sealed,
    Sent,
    WorldMade,
)
from memarena.sweep.placement import Node, Placed, assign_cells, fits, usual_machine
from memarena.sweep.plan import SweepFile
from memarena.sweep.storage import Storage
from memarena.sweep.work import End, Job

NODE_WAIT_S = 60.0
"""How long a sweep waits for a node that can run a cell, if no such node is left."""
_POLL_S = 0.2
Say = Callable[[str], None]


@dataclass(frozen=True)
class SweepOutcome:
    """The outcome of a sweep: names of cells by outcome, each with its cause."""

    sealed: int
    incomplete: Mapping[str, str]
    """Cells that were sealed with open questions."""
    refused: Mapping[str, str]
    given_up: Mapping[str, str]
    """Cells that were lost as often as they may be sent."""
    stopped: bool = False

    @property
    def complete(self) -> bool:
        """Whether every cell is sealed without open questions."""
        return not (self.stopped or self.incomplete or self.refused or self.given_up)


def begin(manifest: ManifestWriter, sweep: SweepFile, cells: tuple[Cell, ...], storage_url: str | None) -> str:
    """Write the sweep and its cells to the manifest if it lacks them; return the sweep's id. Raises SweepError."""
    state = manifest.state
    if state.begun is None:
        manifest.append(Begun(sweep_id=secrets.token_hex(8), memarena=importlib.metadata.version("memarena")))
    if state.planned is not None and state.planned.storage != storage_url and state.sealed:
        raise SweepError(
            f"--storage: sealed cells of this sweep are in {state.planned.storage or 'its own folder'}; give the same"
        )
    planned = Planned(
        title=sweep.title,
        plan_sha256=plan_sha256(cells),
        storage=storage_url,
        cells=tuple(
            PlannedCell(name=c.name, world=c.world.name, memory=c.memory, reader=c.reader, seed=c.seed, timed=c.timed)
            for c in cells
        ),
    )
    earlier_plan = state.planned
    if earlier_plan is None or (earlier_plan.plan_sha256, earlier_plan.storage, earlier_plan.title) != (
        planned.plan_sha256,
        planned.storage,
        planned.title,
    ):
        manifest.append(planned)
    assert state.begun is not None
    return state.begun.sweep_id


@dataclass
class Driver:
    """One call of a sweep, from the first cell that is not sealed to the last."""

    manifest: ManifestWriter
    executor: Executor
    storage: Storage
    cells: tuple[Cell, ...]
    attempts: int
    """Number of times that a cell is sent before it is given up."""
    node_faults: int
    """Number of faults after which a node is put aside."""
    say: Say
    """Gets lines for the user."""
    wants_stop: Callable[[], bool] = lambda: False
    seconds_of: Callable[[Cell], float | None] = lambda _: None
    """Expected seconds of a cell, None if unknown: long cells start first."""
    _waiting: list[Cell] = field(default_factory=list)
    _running: dict[str, tuple[Placed, Job]] = field(default_factory=dict)
    _sent: Counter[str] = field(default_factory=Counter)
    _faults: Counter[str] = field(default_factory=Counter)
    _aside: set[str] = field(default_factory=set)
    _refused: dict[str, str] = field(default_factory=dict)
    _given_up: dict[str, str] = field(default_factory=dict)
    _servers: dict[tuple[str, str], str] = field(default_factory=dict)
    """By node and GPU, the reader's server that was started there last."""
    _machine: str | None = None
    """Kind of the nodes that run timed cells: a single kind, as times of two kinds are never compared."""
    _lonely_since: float | None = None
    """Monotonic time since when no cell runs though some wait."""

    def run(self) -> SweepOutcome:
        """Run all cells. Raises :class:`SweepError` if no node can run a waiting cell, or the storage refuses."""
        self.storage.check()
        self._find_delivered()
        open_cells = [cell for cell in self.cells if cell.name not in self.manifest.state.sealed]
        self._waiting = sorted(open_cells, key=lambda cell: -(self.seconds_of(cell) or 0.0))
        try:
            while (self._waiting or self._running) and not self.wants_stop():
                self._send(self.executor.nodes())
                for ended in self.executor.ended(_POLL_S):
                    self._take(ended)
        finally:
            # A cell that ends meanwhile is found sealed on its node by the next call.
            self.executor.stop()
        outcome = self._outcome()
        if outcome.complete:
            self.executor.clean()
        return outcome

    def _find_delivered(self) -> None:
        """Add cells to the manifest that were stored just before a driver was killed."""
        for cell in self.cells:
            if cell.name not in self.manifest.state.sealed and (seal := self.storage.seal_of(cell.name)) is not None:
                self.manifest.append(Sealed(cell=cell.name, attempt=0, node="found", seal=seal))

    # -------------------------------------------------------------- sending

    def _send(self, there: Sequence[Node]) -> None:
        """Start as many waiting cells as the nodes ``there`` can run, and record each in the manifest."""
        nodes = [node for node in there if node.name not in self._aside]
        machines = {node.machine for node in nodes if node.timed}
        if self._machine is None or self._machine not in machines:
            self._machine = usual_machine(nodes)
        running = [placed for placed, _ in self._running.values()]
        for placed in assign_cells(
            self._waiting, nodes, running, self._machine, self.manifest.state.nodes, self._servers
        ):
            cell = placed.cell
            if cell.gpu is not None:
                self._servers[placed.node.name, cell.gpu] = cell.server
            self._waiting.remove(cell)
            self._sent[cell.name] += 1
            number = len(self.manifest.state.lost.get(cell.name, ())) + 1
            self.manifest.append(Sent(cell=cell.name, attempt=number, node=placed.node.name))
            job = self.executor.job(placed, last_attempt=self._sent[cell.name] >= self.attempts)
            self._running[cell.name] = placed, job
            self.executor.start(placed, job)
        self._check_nodes(nodes)

    def _check_nodes(self, nodes: Sequence[Node]) -> None:
        """Raise SweepError if no cell runs and none can be started."""
        if self._running or not self._waiting:
            self._lonely_since = None
            return
        now = time.monotonic()
        self._lonely_since = self._lonely_since or now
        # Where nodes come and go one may come back; what no node offers will not appear.
        if nodes and not any(fits(cell, node, ()) for cell in self._waiting for node in nodes):
            cell = self._waiting[0]
            needs = f"{cell.needs.cpus} cores" + (f", {cell.needs.gpus:g} GPUs" if cell.needs.gpus else "")
            needs += "".join(f", {name} {value:g}" for name, value in cell.needs.resources.items())
            needs += "".join(f", label {name}={value}" for name, value in cell.needs.labels.items())
            timed = ", and the resource timed" if cell.timed else ""
            raise SweepError(f"no node can take {cell.name}, which needs {needs}{timed}; nodes: {_names(nodes)}")
        if not nodes and (self._aside or now - self._lonely_since > NODE_WAIT_S):
            reason = f"put aside: {', '.join(sorted(self._aside))}" if self._aside else "none is there"
            last = next((losses[-1].cause for losses in self.manifest.state.lost.values() if losses), "")
            raise SweepError(
                f"no node is left ({reason}{f'; {last}' if last else ''}); "
                "the same command goes on where this one stopped"
            )

    # -------------------------------------------------------------- taking

    def _take(self, ended: Ended) -> None:
        """Record how an attempt ended, and release its reader if no other cell on the node needs it."""
        cell, node, end = ended.placed.cell, ended.placed.node, ended.end
        _, job = self._running.pop(cell.name)
        # First, since no result over another world may be sealed.
        if end.world_sha256 and (fault := self._other_world(cell, node, end.world_sha256)) is not None:
            end = End("refused", fault)
        if end.how == "storage":
            raise StorageError(end.line)
        if end.how == "sealed":
            assert end.seal is not None
            number = len(self.manifest.state.lost.get(cell.name, ())) + 1
            self.manifest.append(Sealed(cell=cell.name, attempt=number, node=node.name, seal=end.seal))
            self.executor.forget(ended.placed, job)
            sealed_count = len(self.manifest.state.sealed.keys() & {own.name for own in self.cells})
            self.say(f"sealed {sealed_count} of {len(self.cells)}: {cell.name}, {end.seal.wall_s:.1f} s on {node.name}")
        elif end.how == "refused":
            self.manifest.append(Refused(cell=cell.name, node=node.name, cause=end.line))
            self._refused[cell.name] = end.line
            self.say(f"refused: {cell.name}: {end.line}")
        elif end.how != "stopped" or not self.wants_stop():
            self._lost(ended, end)
        there = (placed.cell for placed, _ in self._running.values() if placed.node.name == node.name)
        if not any(other_cell.server == cell.server for other_cell in (*there, *self._waiting)):
            self.executor.release(ended.placed)

    def _other_world(self, cell: Cell, node: Node, sha256: str) -> str | None:
        """Record the hash of a generated world; return how it differs from another node's, None if it does not."""
        own_world = self.manifest.state.worlds.get(cell.world.key)
        if own_world is None:
            self.manifest.append(WorldMade(key=cell.world.key, sha256=sha256))
            return None
        if own_world != sha256:
            return f"world {cell.world.name} is {sha256[:12]} on {node.name} and {own_world[:12]} elsewhere"
        return None

    def _lost(self, ended: Ended, end: End) -> None:
        """Record a lost attempt: its cell waits again or is given up; a node with too many faults is put aside."""
        cell, node = ended.placed.cell, ended.placed.node
        number = len(self.manifest.state.lost.get(cell.name, ())) + 1
        record = Lost(cell=cell.name, attempt=number, node=node.name, cause=end.line, by_node=ended.by_node)
        self.manifest.append(record)
        self.say(f"lost on {node.name}: {cell.name}: {end.line}")
        if ended.by_node:
            self._faults[node.name] += 1
            if self._faults[node.name] >= self.node_faults and node.name not in self._aside:
                self._aside.add(node.name)
                self.manifest.append(Aside(node=node.name, cause=end.line))
                self.say(f"put aside after {self._faults[node.name]} faults: {node.name}: {end.line}")
            # A fault of the node is not one of the cell: nodes are put aside before cells are given up.
            self._sent[cell.name] -= 1
        if self._sent[cell.name] >= self.attempts:
            self._given_up[cell.name] = end.line
            self.say(f"given up after {self.attempts} attempts: {cell.name}: {end.line}")
        else:
            self._waiting.insert(0, cell)

    def _outcome(self) -> SweepOutcome:
        """Return the outcome of the sweep so far."""
        sealed = self.manifest.state.sealed
        ours = [sealed[cell.name] for cell in self.cells if cell.name in sealed]
        return SweepOutcome(
            sealed=len(ours),
            incomplete={
                sealed_cell.cell: sealed_cell.seal.message
                for sealed_cell in ours
                if sealed_cell.seal.outcome == "incomplete"
            },
            refused=self._refused,
            given_up=self._given_up,
            stopped=bool(self._waiting or self._running),
        )


def _names(nodes: Sequence[Node]) -> str:
    return ", ".join(f"{node.name} ({node.cores} cores{'' if node.timed else ', not timed'})" for node in nodes[:8])
