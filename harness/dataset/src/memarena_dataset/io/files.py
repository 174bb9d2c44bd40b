"""Reads the files of a data set folder, plain or gzip: lines with number and offset, and SHA-256 of all that was read.

It does not parse rows. Every byte that is read is hashed, so that a data set is identified by its uncompressed
content, in either form of its files.
"""

from __future__ import annotations

import gzip
import hashlib
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from memarena_dataset.errors import DatasetError

CORPUS = "corpus_sessions.jsonl"
PERSONAS = "agents_personas.jsonl"
SCHEDULES = "agent_schedules.jsonl"
EVENTS = "events.jsonl"
GROUPS = "groups.json"
LOCATIONS = "locations.json"
EDGES = "graph_edges.jsonl"
EGO_MAP = "ego_session_map.json"
REPORT = "pipeline_report.json"
FACTS = "facts.jsonl"
INSTANCE_FOLDER = "eval_instances"

MAX_LINE_BYTES = 64 << 20
"""Limit of a line, and of a file that holds one JSON value: many times the size of the largest session."""
MAX_BLANK_BYTES = 1 << 20
"""Limit of all blank lines of a file together."""
MAX_EXPANSION = 200
"""Limit of the ratio of unpacked to packed size, for files that unpack to more than 64 MiB; texts have 3 to 30."""
_CHUNK_BYTES = 1 << 20
_BROKEN_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank. ``number`` from 1; ``offset`` and ``length`` in bytes of the uncompressed file."""

    number: int
    offset: int
    length: int
    data: bytes


class Folder:
    """A data set folder. ``sha256_by_file``: SHA-256 of each file that was read to its end, by name without ``.gz``."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise DatasetError(f"{path}: no such folder; a data set folder is expected")
        if not path.is_dir():
            raise DatasetError(f"{path}: not a folder; a data set folder is expected")
        self.path = path
        self.sha256_by_file: dict[str, str] = {}

    def find(self, name: str) -> Path | None:
        """Return the path of a file, plain or ``.gz``, by its name without ``.gz``; None if neither exists.

        Raises:
            DatasetError: both forms exist, which is ambiguous, or the path is not a regular file.
        """
        plain, packed = self.path / name, self.path / f"{name}.gz"
        for path in (plain, packed):
            if path.exists() and not path.is_file():
                # Reading a pipe or a device may never end.
                raise DatasetError(f"{path.relative_to(self.path)}: is no plain file")
        if plain.is_file() and packed.is_file():
            raise DatasetError(f"{name}: both {plain.name} and {packed.name} are there; one form is expected")
        if plain.is_file():
            return plain
        return packed if packed.is_file() else None

    def instance_files(self) -> tuple[str, ...]:
        """Return the names of the question files without ``.gz``, sorted."""
        folder = self.path / INSTANCE_FOLDER
        if folder.exists() and not folder.is_dir():
            raise DatasetError(f"{folder}: is no folder; a folder with one file of questions a family is expected")
        if not folder.is_dir():
            return ()
        names = {entry.name.removesuffix(".gz") for entry in folder.iterdir() if not entry.is_dir()}
        return tuple(f"{INSTANCE_FOLDER}/{name}" for name in sorted(names) if name.endswith(".jsonl"))

    def read_bytes(self, name: str) -> bytes | None:
        """Return the content of a small file that holds one JSON value; None if it does not exist.

        Raises:
            DatasetError: it cannot be read or is too long.
        """
        path = self.find(name)
        if path is None:
            return None
        with _reading(name), _open(path) as stream:
            data = stream.read(MAX_LINE_BYTES + 1)
        if len(data) > MAX_LINE_BYTES:
            raise DatasetError(f"{name}: is longer than {MAX_LINE_BYTES:,} bytes")
        self.sha256_by_file[name] = hashlib.sha256(data).hexdigest()
        return data

    def lines(self, name: str) -> Iterator[Line]:
        """Yield the lines of a file in order without blank lines; none if the file does not exist."""
        path = self.find(name)
        if path is None:
            return
        with _reading(name), _open(path) as stream:
            yield from self._hashed_lines(name, stream, _most_bytes(path))

    def lines_of(self, name: str, stream: IO[bytes]) -> Iterator[Line]:
        """Yield the lines of a stream of ``spool`` from its start, without blank lines."""
        stream.seek(0)
        yield from self._hashed_lines(name, stream)

    def _hashed_lines(self, name: str, stream: IO[bytes], most_bytes: int | None = None) -> Iterator[Line]:
        """Yield the lines that are not blank.

        The SHA-256 is recorded at the end. ``most_bytes``: limit of a packed file's unpacked size.
        """
        digest = hashlib.sha256()
        offset = blank = number = 0
        while raw := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                raise DatasetError(f"{name}:{number}: a line of more than {MAX_LINE_BYTES:,} bytes")
            digest.update(raw)
            if raw.strip():
                yield Line(number=number, offset=offset, length=len(raw), data=raw)
            else:
                blank += len(raw)
            offset += len(raw)
            if blank > MAX_BLANK_BYTES:
                raise DatasetError(f"{name}:{number}: more than {MAX_BLANK_BYTES:,} bytes of blank lines")
            _check_expansion(name, offset, most_bytes)
        self.sha256_by_file[name] = digest.hexdigest()

    def spool(self, name: str) -> IO[bytes]:
        """Open a seekable binary stream of the uncompressed file.

        A gzip file is unpacked once to a temporary file without a name, which vanishes when it is closed.

        Raises:
            DatasetError: the file is missing, unreadable or a broken gzip file.
        """
        path = self.find(name)
        if path is None:
            raise DatasetError(f"{name}: missing in {self.path}; {name} or {name}.gz is expected")
        with _reading(name):
            if path.suffix != ".gz":
                return path.open("rb")
            spooled = tempfile.TemporaryFile(prefix="memarena-corpus-")  # noqa: SIM115 - handed to the caller
            try:
                most_bytes, unpacked = _most_bytes(path), 0
                with gzip.open(path, "rb") as packed:
                    while chunk := packed.read(_CHUNK_BYTES):
                        unpacked += len(chunk)
                        _check_expansion(name, unpacked, most_bytes)
                        spooled.write(chunk)
                spooled.flush()
            except BaseException:
                spooled.close()
                raise
            return spooled

    def sha256(self) -> str:
        """Return the SHA-256 of lines ``<sha256 of the uncompressed file>  <name>`` for all files read, by name."""
        listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(self.sha256_by_file.items()))
        return hashlib.sha256(listing.encode()).hexdigest()


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


class _reading(AbstractContextManager[None]):  # noqa: N801 - reads as a verb where it is used
    """Turns errors of the operating system and of gzip into a DatasetError that names the file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, _BROKEN_GZIP):
            raise DatasetError(f"{self._name}.gz: not a whole gzip file: {error}") from error
        if isinstance(error, OSError):
            raise DatasetError(f"{self._name}: cannot be read: {error.strerror or error}") from error


def _most_bytes(path: Path) -> int | None:
    """Return the limit of a packed file's unpacked size in bytes; None if it is not packed."""
    return None if path.suffix != ".gz" else max(MAX_LINE_BYTES, MAX_EXPANSION * path.stat().st_size)


def _check_expansion(name: str, size: int, most_bytes: int | None) -> None:
    if most_bytes is not None and size > most_bytes:
        raise DatasetError(f"{name}.gz: unpacks to more than {most_bytes:,} bytes, {MAX_EXPANSION} times its size")
