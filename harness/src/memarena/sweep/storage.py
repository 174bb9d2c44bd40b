"""Stores sealed cells: in a folder of this machine, or at any URL that fsspec supports (s3://, gs://, file://)."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memarena.sweep.errors import StorageError, SweepError
from memarena.sweep.sealing import SEAL, Seal, fault_of, read_seal

if TYPE_CHECKING:
    import fsspec


class Storage(Protocol):
    """Stores the files of sealed cells, each cell in a folder of its name."""

    def check(self) -> None:
        """Try to write. Raises :class:`SweepError` with one line if the storage refuses."""

    def bring(self, run: Path, seal: Seal) -> None:
        """Store the sealed files of a run. Raises :class:`SweepError` if the storage refuses."""

    def seal_of(self, cell: str) -> Seal | None:
        """Return the seal of a cell; None if the cell is not stored completely."""


@dataclass(frozen=True)
class FolderStorage:
    """A folder on this machine, in which cells appear atomically."""

    root: Path

    def check(self) -> None:
        with _refusals(f"{self.root}"):
            self.root.mkdir(parents=True, exist_ok=True)
            for leftover in self.root.glob(".part-*"):  # of a driver that was killed
                shutil.rmtree(leftover)
            probe = self.root / f".part-{uuid.uuid4().hex}"
            probe.mkdir()
            (probe / "probe").write_bytes(b"x" * 4096)
            shutil.rmtree(probe)

    def refusals(self) -> AbstractContextManager[None]:
        """Return a context in which a refused write below this folder becomes one line."""
        return _refusals(f"{self.root}")

    def part(self) -> Path:
        """Return a new folder, which :meth:`keep` may add to the storage."""
        with _refusals(f"{self.root}"):
            folder = self.root / f".part-{uuid.uuid4().hex}"
            folder.mkdir(parents=True)
            return folder

    def bring(self, run: Path, seal: Seal) -> None:
        part = self.part()
        try:
            with _refusals(f"{self.root}"):
                for file in seal.files:
                    target = part / file.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(run / file.name, target)
            self.keep(part, seal)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def keep(self, part: Path, seal: Seal) -> None:
        """Take in a folder that holds the files of a seal, after comparing them with it."""
        if (fault := fault_of(part, seal)) is not None:
            raise SweepError(f"{seal.cell}: damaged on its way: {fault}")
        target = self.root / seal.cell
        with _refusals(f"{self.root}"):
            (part / SEAL).write_text(seal.model_dump_json(indent=1), encoding="utf-8")
            for path in part.rglob("*"):
                _sync(path)
            if target.exists():  # half a cell of an earlier version, or one whose files were changed
                target.rename(self.root / f".part-{uuid.uuid4().hex}")
            part.rename(target)
            _sync(self.root)

    def seal_of(self, cell: str) -> Seal | None:
        seal = read_seal(self.root / cell)
        return seal if seal is not None and fault_of(self.root / cell, seal) is None else None


@dataclass(frozen=True)
class RemoteStorage:
    """A URL that fsspec reaches. The seal is written last: a cell without one is not there."""

    url: str

    def check(self) -> None:
        system, root = self._open()
        with _refusals(self.url):
            probe = f"{root}/.probe-{uuid.uuid4().hex}"
            system.makedirs(root, exist_ok=True)
            system.pipe_file(probe, b"x")
            system.rm_file(probe)

    def bring(self, run: Path, seal: Seal) -> None:
        system, root = self._open()
        with _refusals(self.url):
            for file in seal.files:
                target = f"{root}/{seal.cell}/{file.name}"
                system.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
                system.put_file(str(run / file.name), target)
                if system.size(target) != file.bytes:
                    raise OSError(5, f"{target} has another size than was sent")
            system.pipe_file(f"{root}/{seal.cell}/{SEAL}", seal.model_dump_json(indent=1).encode())

    def seal_of(self, cell: str) -> Seal | None:
        system, root = self._open()
        with _refusals(self.url):
            if not system.exists(f"{root}/{cell}/{SEAL}"):
                return None
            return Seal.model_validate_json(system.cat_file(f"{root}/{cell}/{SEAL}"))

    def fetch(self, seal: Seal, folder: FolderStorage) -> None:
        """Bring a cell into a folder of this machine, compared with its seal."""
        system, root = self._open()
        part = folder.part()
        try:
            with _refusals(self.url):
                for file in seal.files:
                    (part / file.name).parent.mkdir(parents=True, exist_ok=True)
                    system.get_file(f"{root}/{seal.cell}/{file.name}", str(part / file.name))
            folder.keep(part, seal)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _open(self) -> tuple[fsspec.AbstractFileSystem, str]:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise SweepError("--storage: needs fsspec", remedy="pip install 'memarena[fsspec]'") from error
        try:
            system, root = url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise SweepError(f"--storage {self.url}: {error}") from error
        return system, root.rstrip("/")


def storage_of(folder: Path, url: str | None) -> Storage:
    """Return the storage of a sweep's sealed cells: the URL, or else the folder ``cells`` next to its manifest."""
    return FolderStorage(folder / "cells") if url is None else RemoteStorage(url)


@contextmanager
def _refusals(where: str) -> Iterator[None]:
    """Turn any error of a storage into one line; all kinds are caught, since clients of clouds raise their own."""
    try:
        yield
    except SweepError:
        raise
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
        raise StorageError(f"storage {where}: {reason}; sealed cells stay where they were made") from error


def _sync(path: Path) -> None:
    with contextlib.suppress(PermissionError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
