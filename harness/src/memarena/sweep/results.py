"""Returns the sealed cells of a sweep as runs: one for each world, with a log for each cell.

Reports and other readers of logs use it to treat a sweep like a run. Each cell is compared with its seal first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena.sweep.cells import digest
from memarena.sweep.errors import SweepError
from memarena.sweep.manifest import SweepState, is_sweep, read_manifest
from memarena.sweep.sealing import fault_and_additions
from memarena.sweep.storage import FolderStorage, RemoteStorage

__all__ = ["SweptWorld", "is_sweep", "missing", "swept_worlds"]


@dataclass(frozen=True)
class SweptWorld:
    """Cells over one world that may be in one table. ``run_id`` follows from their names."""

    world: str
    run_id: str
    runs: tuple[Path, ...]


def swept_worlds(folder: Path, say: Callable[[str], None]) -> list[SweptWorld]:
    """Return the worlds of a sweep in the order of its file; cells that are not sealed yet are left out.

    Cells that were stored at a URL are fetched once into ``cells``. Timed cells of different kinds of machine are in
    separate worlds. ``say`` gets a line for each cell to whose log something was added since it was sealed.

    Raises :class:`SweepError` if no cell of the sweep is sealed, or if a cell is not as it was sealed.
    """
    state = read_manifest(folder)
    groups: dict[tuple[str, str], list[str]] = {}
    for cell in state.planned.cells if state.planned else ():
        if cell.name in state.sealed:
            machine = state.sealed[cell.name].seal.machine if cell.timed else ""
            groups.setdefault((cell.world, machine), []).append(cell.name)
    if not groups:
        raise SweepError(f"{folder}: no cell of this sweep is sealed yet")
    return [
        SweptWorld(world, digest(sorted(names))[:16], tuple(_at(folder, state, name, say) for name in names))
        for (world, _), names in groups.items()
    ]


def missing(folder: Path) -> Sequence[str]:
    """Return the names of the cells that are not sealed."""
    state = read_manifest(folder)
    return [cell.name for cell in (state.planned.cells if state.planned else ()) if cell.name not in state.sealed]


def _at(folder: Path, state: SweepState, name: str, say: Callable[[str], None]) -> Path:
    """Return the folder of a sealed cell, fetched from the sweep's URL if it is not on this machine."""
    storage, seal = FolderStorage(folder / "cells"), state.sealed[name].seal
    path = storage.root / name
    if path.is_dir():
        fault, added = fault_and_additions(path, seal)  # `memarena judge` may have added verdicts to the log since
        if fault is not None:
            raise SweepError(f"{path}: {fault}")
        if added:
            say(f"{path}: since it was sealed {added}")
        return path
    assert state.planned is not None
    if state.planned.storage is None:
        raise SweepError(f"{path}: is missing, though the manifest says that it was sealed")
    RemoteStorage(state.planned.storage).fetch(seal, storage)
    return path
