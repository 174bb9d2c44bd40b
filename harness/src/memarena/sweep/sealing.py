"""Seals a cell: records the files of its run with their hashes and sizes, and the outcome.

The seal is compared with the files whenever they are moved or read, so that a damaged copy is never counted.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from memarena.log.store import LOG_NAME, LogError, LogReader
from memarena.sweep.errors import SweepError

SEAL = "seal.json"
_BLOCK = 1 << 20


class SealedFile(BaseModel):
    """A file of a sealed cell; ``name`` is its path below the cell's folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    bytes: int
    sha256: str


class SealedLog(BaseModel):
    """The log as it was sealed. A judge may add to it later; what was there must stay as it was.

    ``sha256`` is over its records and texts (:meth:`memarena.log.store.LogReader.prefix`), whatever comes after them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    records: int
    texts: int
    sha256: str


class Seal(BaseModel):
    """What was kept of a cell. ``sha256`` is over names and hashes of the files, in the order of their names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell: str
    outcome: Literal["complete", "incomplete"]
    """``incomplete``: questions were left open, or a backend failed them all, as often as the cell was sent."""
    message: str
    """The last line that the run printed, if it is incomplete."""
    wall_s: float
    """Seconds from the start of the run's process to its end, the last time it was started."""
    machine: str
    """Kind of the node: it must be the same for all timed cells of a comparison."""
    files: tuple[SealedFile, ...]
    sha256: str
    log: SealedLog | None = None
    """None in seals of 0.2.0 and before."""

    @property
    def bytes(self) -> int:
        """Size of all files, in bytes."""
        return sum(file.bytes for file in self.files)


def kept_files(run: Path) -> list[Path]:
    """Return the files of a run that are sealed: all but the backends' own data and the sidecars of an open log."""
    paths = []
    for path in sorted(run.rglob("*")):
        parts = path.relative_to(run).parts
        of_backend = len(parts) > 2 and parts[0] == "cells" and parts[2] == "data"
        beside_log = parts[0] in ("writer.lock", f"{LOG_NAME}-wal", f"{LOG_NAME}-shm")
        if path.is_file() and not path.is_symlink() and not of_backend and not beside_log:
            paths.append(path)
    return paths


def seal(
    cell: str, run: Path, outcome: Literal["complete", "incomplete"], message: str, wall_s: float, machine: str
) -> Seal:
    """Seal a run that has ended. Raises :class:`SweepError` if its log cannot be read from end to end."""
    wal = run / f"{LOG_NAME}-wal"
    if wal.exists() and wal.stat().st_size:
        raise SweepError(f"{cell}: the log was not closed")
    try:
        with LogReader(run) as log:
            log.verify()
            records, texts, sha256 = log.prefix()
    except LogError as error:
        raise SweepError(f"{cell}: {error}") from error
    files = tuple(
        SealedFile(name=path.relative_to(run).as_posix(), bytes=path.stat().st_size, sha256=file_sha256(path))
        for path in kept_files(run)
    )
    return Seal(
        cell=cell, outcome=outcome, message=message, wall_s=round(wall_s, 3), machine=machine, files=files,
        sha256=files_sha256(files), log=SealedLog(records=records, texts=texts, sha256=sha256),
    )  # fmt: skip


def files_sha256(files: tuple[SealedFile, ...]) -> str:
    """Return the SHA-256 over names and hashes of files."""
    lines = (f"{file.sha256}  {file.name}\n" for file in sorted(files, key=lambda file: file.name))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault_of(folder: Path, sealed: Seal) -> str | None:
    """Return which part of a sealed cell is missing or changed; None if there is none."""
    return _check(folder, sealed)[0]


def fault_and_additions(folder: Path, sealed: Seal) -> tuple[str | None, str]:
    """Return the same as :func:`fault_of`, and how many records of which kind were added to the log ("" if none)."""
    return _check(folder, sealed, log_may_grow=True)


def _check(folder: Path, sealed: Seal, *, log_may_grow: bool = False) -> tuple[str | None, str]:
    """Return the first fault of a sealed cell, or None, and the records that were added to its log."""
    added = ""
    if files_sha256(sealed.files) != sealed.sha256:
        return "the seal does not match its own list of files", ""
    for file in sealed.files:
        path = folder / file.name
        if not path.is_file():
            return f"{file.name} is missing", ""
        if path.stat().st_size == file.bytes and file_sha256(path) == file.sha256:
            continue
        if not log_may_grow or file.name != LOG_NAME:
            return f"{file.name} is not as it was sealed", ""
        fault, added = _check_grown_log(folder, sealed)
        if fault:
            return fault, ""
    return None, added


def _check_grown_log(folder: Path, sealed: Seal) -> tuple[str | None, str]:
    """Return the fault of a log that changed since it was sealed, and the records that were added to it."""
    if sealed.log is None:
        return None, "its log was changed, and its seal, of memarena 0.2.0 or before, does not tell how"
    try:
        with LogReader(folder) as log:
            if log.prefix(sealed.log.records, sealed.log.texts) != (*sealed.log.model_dump().values(),):
                return f"{LOG_NAME}: a record or text of the {sealed.log.records} sealed records was changed", ""
            kinds = log.kinds_after(sealed.log.records)
    except LogError as error:
        return str(error), ""
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return None, f"{sum(kinds.values())} records were added to its log ({counts})" if kinds else ""


def read_seal(folder: Path) -> Seal | None:
    """Return the seal in a folder; None if it has none, or if a kill cut it off."""
    try:
        return Seal.model_validate_json((folder / SEAL).read_bytes())
    except (OSError, ValidationError):
        return None
