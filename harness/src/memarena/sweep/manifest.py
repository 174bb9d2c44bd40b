"""Writes and reads the manifest of a sweep: a file of JSON lines, appended and synced before the driver goes on.

It states which cells there are, which were sent to which node, which were lost and why, and which are sealed. A lock
next to the file admits a single driver. If a kill cut off the last line, the next driver removes that line; the work
that it recorded is detected on the node, or repeated.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from memarena_dataset.safe_files import acquire_lock, sync_folder
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memarena.log.store import LOG_NAME
from memarena.sweep.errors import SweepError
from memarena.sweep.sealing import Seal

MANIFEST = "sweep.jsonl"
LOCK = "sweep.lock"
SCHEMA = 1


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    at: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))


class Begun(_Record):
    """The first record."""

    kind: Literal["begun"] = "begun"
    schema_version: int = SCHEMA
    sweep_id: str
    memarena: str


class PlannedCell(BaseModel):
    """A cell as reports need it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    world: str
    memory: str
    reader: str
    seed: str
    timed: bool


class Planned(_Record):
    """The cells of the sweep's file; written again when the file has changed. The last such record counts."""

    kind: Literal["planned"] = "planned"
    title: str
    plan_sha256: str
    storage: str | None
    """URL at which sealed cells are stored; None: the folder ``cells`` next to this file."""
    cells: tuple[PlannedCell, ...]


class WorldMade(_Record):
    """A node generated a world from its seed. Every node has to generate the same, by its hash."""

    kind: Literal["world"] = "world"
    key: str
    sha256: str


class Sent(_Record):
    """A cell was sent to a node. If the driver is killed, no record of the attempt's end follows."""

    kind: Literal["sent"] = "sent"
    cell: str
    attempt: int
    node: str


class Lost(_Record):
    """An attempt failed: its node or process died, or questions were left open. The cell is sent again or given up."""

    kind: Literal["lost"] = "lost"
    cell: str
    attempt: int
    node: str
    cause: str
    by_node: bool
    """Whether it counts as a fault of the node."""


class Refused(_Record):
    """A cell cannot be run, because of bad input. It is tried again when the sweep is started again."""

    kind: Literal["refused"] = "refused"
    cell: str
    node: str
    cause: str


class Sealed(_Record):
    """A cell is sealed and its files are in the sweep's storage. At most one such record for each cell."""

    kind: Literal["sealed"] = "sealed"
    cell: str
    attempt: int
    node: str
    seal: Seal


class Aside(_Record):
    """A node was put aside after too many faults: this call of the sweep sends it no further cell."""

    kind: Literal["aside"] = "aside"
    node: str
    cause: str


AnyRecord = Annotated[Begun | Planned | WorldMade | Sent | Lost | Refused | Sealed | Aside, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[AnyRecord] = TypeAdapter(AnyRecord)


@dataclass
class SweepState:
    """The state of a sweep, from the records of its manifest."""

    begun: Begun | None = None
    planned: Planned | None = None
    worlds: dict[str, str] = field(default_factory=dict)
    sealed: dict[str, Sealed] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    """By cell, the node that it was sent to last."""
    lost: dict[str, list[Lost]] = field(default_factory=dict)
    refused: dict[str, Refused] = field(default_factory=dict)

    def take(self, record: AnyRecord) -> None:
        """Add the next record. Raises ValueError if it contradicts the earlier ones."""
        if isinstance(record, Begun):
            self.begun = record
        elif isinstance(record, Planned):
            self.planned = record
        elif isinstance(record, WorldMade):
            self.worlds[record.key] = record.sha256
        elif isinstance(record, Sealed):
            if record.cell in self.sealed:
                raise ValueError(f"cell {record.cell} is sealed twice")
            self.sealed[record.cell] = record
            self.refused.pop(record.cell, None)
        elif isinstance(record, Lost):
            self.lost.setdefault(record.cell, []).append(record)
        elif isinstance(record, Sent):
            self.nodes[record.cell] = record.node
        elif isinstance(record, Refused):
            self.refused[record.cell] = record


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a sweep."""
    return (folder / MANIFEST).is_file()


def read_manifest(folder: Path) -> SweepState:
    """Return the state of a sweep, which may still be running. Raises :class:`SweepError` for an unreadable line."""
    state = SweepState()
    for number, record in enumerate(records(folder), 1):
        try:
            state.take(record)
        except ValueError as error:
            raise SweepError(f"{folder / MANIFEST}:{number}: damaged: {error}") from error
    return state


def records(folder: Path) -> Iterator[AnyRecord]:
    """Yield the records of a manifest in order, without a last line that was cut off. Raises :class:`SweepError`."""
    path = folder / MANIFEST
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SweepError(f"{path}: cannot be read: {error.strerror}") from error
    *lines, _cut_off = raw.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            record = _ADAPTER.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise SweepError(f"{path}:{number}: damaged: {first['msg']}") from error
        if isinstance(record, Begun) and record.schema_version > SCHEMA:
            raise SweepError(
                f"{path}: schema version {record.schema_version}, this memarena reads up to {SCHEMA}; update memarena"
            )
        yield record


class ManifestWriter:
    """The only writer of a manifest, with the state that results from its records.

    Raises :class:`SweepError` if another driver works on the folder, it holds a run, or a record cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / MANIFEST
        if (folder / LOG_NAME).exists():  # reports would show one of the two
            raise SweepError(f"--out {folder}: holds a run; a separate folder is expected for the sweep")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = acquire_lock(folder / LOCK)
        except BlockingIOError as error:
            raise SweepError(f"--out {folder}: another sweep is working in this folder") from error
        except OSError as error:
            raise SweepError(f"--out {folder}: cannot be written to: {error.strerror}") from error
        try:
            self.state = read_manifest(folder) if self._path.exists() else SweepState()
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            self._cut()
        except BaseException:
            os.close(self._lock)
            raise

    def _cut(self) -> None:
        """Cut off an incomplete last line, and sync the file's entry in its folder to the disk."""
        raw = self._path.read_bytes()
        os.ftruncate(self._file, raw.rfind(b"\n") + 1)
        os.fsync(self._file)
        sync_folder(self._path.parent)

    def append(self, record: AnyRecord) -> None:
        """Append a record; it is on the disk when this returns."""
        self.state.take(record)
        line = record.model_dump_json().encode() + b"\n"
        size_before = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                raise OSError(28, "No space left on device")
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size_before)
            raise SweepError(f"{self._path}: cannot be written: {error.strerror}; nothing is lost") from error

    def close(self) -> None:
        """Close the file and release the lock."""
        os.close(self._file)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
