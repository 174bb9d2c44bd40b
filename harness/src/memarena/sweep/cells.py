"""From the file of a sweep to its cells: the same file always gives the same cells with the same names."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import open_dataset

from memarena.execution.models.shared_readers import device_of, may_be_shared, server_key
from memarena.sweep.errors import SweepError
from memarena.sweep.plan import JudgeEntry, MemoryEntry, Needs, ReaderEntry, SweepFile, WorldEntry

_HASH_DIGITS = 10


@dataclass(frozen=True)
class World:
    """A data set: at a path, or what the simulator makes of a seed."""

    name: str
    key: str
    """Hash of what decides its content: that of its files, or of preset, seed and sizes."""
    dataset: Path | None = None
    arguments: tuple[str, ...] = ()
    """Of ``masim generate``, without ``--out``."""


@dataclass(frozen=True)
class Cell:
    """One world × memory × reader × seed of sampling, carried out as a run of its own."""

    name: str
    world: World
    memory: str
    reader: str
    seed: str
    timed: bool
    needs: Needs
    config: Mapping[str, Any] = field(hash=False)
    """Fields of the run's configuration but for the data set's path."""
    judges: tuple[JudgeEntry, ...] = ()
    server: str = ""
    """Of the reader that answers: cells with the same share a server, where they run on one node."""
    gpu: str | None = None
    """What this server takes for itself: a GPU, by its number, or ``cpu``; None: neither."""


def cells_of(sweep: SweepFile) -> tuple[Cell, ...]:
    """All cells in the order of the file: worlds, memories, readers, seeds.

    Raises :class:`SweepError` for a data set that cannot be read, or two cells that are the same.
    """
    cells = tuple(_cells(sweep))
    names = [cell.name for cell in cells]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SweepError(f"two cells are the same: {twice}; a world, memory or reader stands in the file twice")
    return cells


def plan_sha256(cells: tuple[Cell, ...]) -> str:
    """Hash over the names of the cells, which decide everything."""
    return hashlib.sha256("\n".join(cell.name for cell in cells).encode()).hexdigest()


def _cells(sweep: SweepFile) -> Iterator[Cell]:
    for world in (world for entry in sweep.worlds for world in _worlds(entry)):
        for memory in sweep.memories:
            for reader in sweep.readers:
                for seed in sweep.seeds:
                    yield _cell(sweep, world, memory, reader, seed)


def _cell(sweep: SweepFile, world: World, memory: MemoryEntry, reader: ReaderEntry, seed: str) -> Cell:
    config: dict[str, Any] = {**sweep.run, **memory.run}
    backend = memory.backend or memory.name
    config["backends"] = [backend if backend == memory.name else f"{memory.name}={backend}"]
    config["readers"] = [reader.model_dump(mode="json", exclude={"needs"}, exclude_defaults=True)]
    config["seeds"] = [seed]
    if memory.options:
        config["options"] = {memory.name: memory.options}
    if memory.settings:
        config["settings"] = {memory.name: memory.settings}
    if not sweep.timed:
        # What shares its node with others neither times nor meters anything.
        config |= {"timed": False, "meters": ["none"], "floor_samples": 0}
    judges = [judge.model_dump(mode="json", exclude_defaults=True) for judge in sweep.judges]
    label = reader.name or reader.model or reader.spec
    decides = {"world": world.key, "run": config, "timed": sweep.timed, "judges": judges}
    short = "_".join(_short(part) for part in (world.name, memory.name, label, seed))
    name = f"{short}_{digest(decides)[:_HASH_DIGITS]}"
    return Cell(
        name=name,
        world=world,
        memory=memory.name,
        reader=label,
        seed=seed,
        timed=sweep.timed,
        needs=memory.needs.with_those_of(reader.needs),
        config=config,
        judges=sweep.judges,
        server=server_key(reader) if may_be_shared(reader, timed=sweep.timed) else name,
        gpu=device_of(reader),
    )


def _worlds(entry: WorldEntry) -> Iterator[World]:
    if entry.dataset is not None:
        yield _of_folder(entry.dataset)
        return
    sizes = {"agents": entry.agents, "days": entry.days, "density": entry.density, "banks": entry.banks}
    sizes_stated = {name: value for name, value in sizes.items() if value is not None}
    for seed in entry.seeds:
        spec = {"preset": entry.preset, "seed": seed, **sizes_stated}
        arguments = tuple(word for name, value in spec.items() for word in (f"--{name}", str(value)))
        yield World(name=f"{entry.preset}-{seed}", key=digest(spec), arguments=arguments)


def _of_folder(path: Path) -> World:
    try:
        with open_dataset(path) as dataset:
            return World(name=dataset.name, key=dataset.sha256, dataset=path)
    except (DatasetError, OSError) as error:
        raise SweepError(f"worlds: {error}") from error


def digest(content: object) -> str:
    """SHA-256 of plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _short(text: str) -> str:
    """A part of a file name: the end of a path or address, without what a shell or a store minds."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text.rstrip("/").rsplit("/", 1)[-1]).strip("-.")[:32] or "x"
