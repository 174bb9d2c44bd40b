"""Reads and checks the file of a sweep: worlds, memories, readers, seeds, and fields that hold for every cell."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from memarena.execution.backends.manifests import choose_backend
from memarena.execution.errors import RunError
from memarena.execution.planning.config import SETTINGS, SeedLabel
from memarena.execution.planning.model_config import ReaderConfig
from memarena.execution.planning.parsing import parse_config
from memarena.execution.reasons import reason_of
from memarena.sweep.errors import SweepError

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
OF_THE_SWEEP = tuple(each.name for each in SETTINGS if not (each.role or each.setting.in_sweep))
"""Fields of a run that may not be below ``run``, since a sweep's file has its own fields for them."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Needs(_Part):
    """What a cell takes of a node while it runs. A timed cell takes the node's cores whole."""

    cpus: Annotated[int, Field(ge=1)] = 1
    gpus: Annotated[float, Field(ge=0)] = 0.0
    resources: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Further resources that a node has to declare (``ray start --resources``)."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that a node has to carry (``ray start --labels``)."""

    def with_those_of(self, other: Needs) -> Needs:
        """Return what both need together: the larger number of cores, sums of GPUs and of resources, all labels."""
        names = self.resources.keys() | other.resources.keys()
        return Needs(
            cpus=max(self.cpus, other.cpus),
            gpus=self.gpus + other.gpus,
            resources={name: self.resources.get(name, 0) + other.resources.get(name, 0) for name in sorted(names)},
            labels={**self.labels, **other.labels},
        )


class WorldEntry(_Part):
    """A data set by its folder, or worlds of the simulator, one for each seed."""

    dataset: Path | None = None
    """Relative to the file."""
    preset: Literal["tiny", "s", "m", "l", "year"] | None = None
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = ()
    agents: Annotated[int, Field(ge=1)] | None = None
    days: Annotated[int, Field(ge=1)] | None = None
    density: Annotated[float, Field(gt=0)] | None = None
    banks: Literal["all", "tuning", "held-out"] | None = None

    @field_validator("dataset", mode="before")
    @classmethod
    def _names_a_folder(cls, value: Any) -> Any:
        if isinstance(value, str) and not value.strip():  # a path would take it for the file's own folder
            raise ValueError("expected the path of a folder")
        return value

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.dataset is None) == (self.preset is None):
            raise ValueError("expected either dataset, or preset and seeds")
        if self.preset is not None and not self.seeds:
            raise ValueError("seeds: expected at least one with preset")
        of_worlds = (self.seeds, self.agents, self.days, self.density, self.banks)
        if self.dataset is not None and any(value not in (None, ()) for value in of_worlds):
            raise ValueError("dataset: stands alone; seeds, agents, days, density and banks go with preset")
        return self


class MemoryEntry(_Part):
    """A memory: a backend under a name, with its options."""

    name: _Name
    backend: str | None = None
    """The argument of ``memarena run --backend``; None: the backend called ``name``."""
    options: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    run: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields of a run for the cells of this memory alone, over those of the sweep."""
    needs: Needs = Needs()


class ReaderEntry(ReaderConfig):
    """A reader, with what it needs of a node."""

    needs: Needs = Needs()


class JudgeEntry(_Part):
    """A judge with a model: ``memarena judge --judge NAME --endpoint URL`` on each log before it is sealed."""

    name: _Name
    endpoint: str
    model: str | None = None
    api_key_env: str | None = None
    """Variable that holds the key, in the environment of the node."""


class SweepFile(_Part):
    """Everything that a sweep's file says."""

    title: str = ""
    worlds: Annotated[tuple[WorldEntry, ...], Field(min_length=1)]
    memories: Annotated[tuple[MemoryEntry, ...], Field(min_length=1)]
    readers: Annotated[tuple[ReaderEntry, ...], Field(min_length=1)]
    seeds: Annotated[tuple[SeedLabel, ...], Field(min_length=1)] = ("s1",)
    timed: bool = False
    """Whether times count: then a cell has its node to itself. Otherwise cells share nodes and log no times."""
    judges: tuple[JudgeEntry, ...] = ()
    run: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields of a run, the same for every cell: protocol, limit, budgets…"""
    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """Number of times that a cell is sent before it is given up."""
    node_faults: Annotated[int, Field(ge=1)] = 2
    """Number of faults (it died, its disk is full) after which a node gets no further cell."""

    @model_validator(mode="after")
    def _no_name_twice(self) -> Self:
        for field, names in (
            ("memories", [entry.name for entry in self.memories]),
            ("readers", [entry.name or entry.model or entry.spec for entry in self.readers]),
            ("seeds", [str(entry) for entry in self.seeds]),
            ("judges", [entry.name for entry in self.judges]),
        ):
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise ValueError(f"{field}: {twice} is named twice")
        for name in OF_THE_SWEEP:
            if name in self.run or any(name in memory.run for memory in self.memories):
                raise ValueError(f"run.{name}: is no field here; the sweep has a separate field for it")
        return self


def read_sweep(path: Path) -> SweepFile:
    """Read the file of a sweep; data sets get absolute paths. Raises :class:`SweepError` naming file and field."""
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise SweepError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SweepError(f"{path}: not valid TOML: {error}") from error
    try:
        sweep = SweepFile.model_validate(content)
    except ValidationError as error:
        raise SweepError(f"{path}: {_first(error)}") from error
    run: dict[str, Any] = {"dataset": ".", "backends": ["none"], "readers": [{"spec": "none"}], **sweep.run}
    try:
        parse_config(run, f"{path}: run")
        for memory in sweep.memories:
            memory_fields = {"options": {memory.name: memory.options}, "settings": {memory.name: memory.settings}}
            parse_config({**run, **memory.run, **memory_fields}, f"{path}: memories")
    except RunError as error:
        raise SweepError(str(error)) from error
    folder = path.absolute().parent
    worlds = tuple(
        world if world.dataset is None else world.model_copy(update={"dataset": folder / world.dataset})
        for world in sweep.worlds
    )
    return sweep.model_copy(update={"worlds": worlds})


def check_memories(sweep: SweepFile, file: Path | str) -> None:
    """Raise :class:`SweepError` for a memory that this machine does not know; other nodes may."""
    for index, memory in enumerate(sweep.memories):
        try:
            choose_backend(memory.backend or memory.name)
        except RunError as error:
            reason = str(error).removeprefix("--backend ")
            raise SweepError(f"{file}: memories.{index}.{'backend' if memory.backend else 'name'}: {reason}") from error


def _first(error: ValidationError) -> str:
    """Return the first field at fault and the reason, in one line."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    reason = reason_of(first)
    actual = f", got {str(first['input'])[:80]!r}" if isinstance(first["input"], str | int | float) else ""
    return f"{field}: {reason}{actual}" if field else reason
