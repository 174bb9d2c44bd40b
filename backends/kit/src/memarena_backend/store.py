"""Stores committed days durably in one SQLite file, with one transaction per day.

A row is both a day's ledger entry (batch id, digest) and its content, so a process killed at any moment leaves complete
days only.
"""

from __future__ import annotations

import fcntl
import sqlite3
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import grpc
from google.protobuf.message import DecodeError
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DayDigest

from memarena_backend.day_decoder import DayAssembler, ReceivedDay
from memarena_backend.errors import CallError, data_loss
from memarena_backend.records import Day

STORE_NAME = "days.sqlite"
STORE_VERSION = 2

_LENGTH = struct.Struct(">I")

_SCHEMA = f"""
BEGIN;
CREATE TABLE days (
    namespace TEXT NOT NULL,
    day_index INTEGER NOT NULL,
    batch_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    frames BLOB NOT NULL,
    kept_digest BLOB,
    PRIMARY KEY (namespace, day_index)
);
CREATE UNIQUE INDEX days_by_batch ON days (namespace, batch_id);
PRAGMA user_version = {STORE_VERSION};
COMMIT;
"""
"""``kept_digest`` is the digest of the frames after a Forget, NULL if they are still as they were sent."""

_FROM_VERSION_1 = """
BEGIN;
ALTER TABLE days ADD COLUMN kept_digest BLOB;
PRAGMA user_version = 2;
COMMIT;
"""


Rewrite = Callable[[list[pb.IngestRequest]], tuple[list[pb.IngestRequest], int]]
"""Takes the frames of a day; returns the remaining frames, and how many turns and events it removed."""


class StoreError(Exception):
    """The store cannot be opened; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch in the ledger: the day that it committed, and the digest of that day as sent."""

    day_index: int
    digest: bytes


class DayStore:
    """Committed days of all namespaces. Safe to share between threads.

    Raises :class:`StoreError` when opening fails, and CallError from every other method: RESOURCE_EXHAUSTED for a full
    disk, DATA_LOSS for a day that does not match its digest, INTERNAL for any other fault of the file.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / STORE_NAME
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            self._lock_file: IO[str] = (data_dir / "server.lock").open("a")
        except OSError as error:
            raise StoreError(f"--data-dir {data_dir}: cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock_file.close()
            raise StoreError(f"--data-dir {data_dir}: another backend is using this folder") from error
        self._mutex = threading.Lock()
        try:
            self._db = _open(self._path)
        except BaseException:
            self._lock_file.close()
            raise

    def close(self) -> None:
        """Close the file and release the lock on the folder."""
        with self._mutex:
            self._db.close()
            self._lock_file.close()

    def last_day(self, namespace: str) -> int | None:
        """Return the index of the last committed day, None if there is none."""
        with self._guarded() as db:
            row = db.execute("SELECT max(day_index) FROM days WHERE namespace = ?", (namespace,)).fetchone()
        return None if row[0] is None else int(row[0])

    def day_at(self, namespace: str, day_index: int) -> int | None:
        """Return the index of the last committed day that is not after ``day_index``, None if there is none."""
        query = "SELECT max(day_index) FROM days WHERE namespace = ? AND day_index <= ?"
        with self._guarded() as db:
            row = db.execute(query, (namespace, day_index)).fetchone()
        return None if row[0] is None else int(row[0])

    def find_batch(self, namespace: str, batch_id: str) -> Committed | None:
        """Return the committed batch of that id, None if there is none."""
        query = "SELECT day_index, digest FROM days WHERE namespace = ? AND batch_id = ?"
        with self._guarded() as db:
            row = db.execute(query, (namespace, batch_id)).fetchone()
        return None if row is None else Committed(int(row[0]), bytes(row[1]))

    def commit(self, received: ReceivedDay) -> None:
        """Make a day durable: on return it survives a crash of the process and of the machine."""
        row = (
            received.namespace,
            received.day.index,
            received.batch_id,
            received.digest,
            _pack(received.frames),
        )
        with self._guarded() as db:
            db.execute("INSERT INTO days (namespace, day_index, batch_id, digest, frames) VALUES (?,?,?,?,?)", row)

    def days(self, namespace: str) -> Iterator[Day]:
        """Yield the committed days, oldest first, each checked against its digest, with one day in memory at a time."""
        with self._guarded() as db:
            query = "SELECT day_index FROM days WHERE namespace = ? ORDER BY day_index"
            indices = [int(row[0]) for row in db.execute(query, (namespace,))]
        for index in indices:
            with self._guarded() as db:
                query = "SELECT coalesce(kept_digest, digest), frames FROM days WHERE namespace = ? AND day_index = ?"
                row = db.execute(query, (namespace, index)).fetchone()
            yield _read_day(bytes(row[0]), bytes(row[1]))

    def rewrite(self, namespace: str, without: Rewrite) -> int:
        """Replace the frames of each day by what ``without`` returns, atomically for all days.

        Returns how many turns and events were removed. Batch ids and digests stay as they were sent, so that a replay
        of a batch is still recognised.
        """
        removed = 0
        with self._guarded() as db:
            query = "SELECT day_index, frames FROM days WHERE namespace = ?"
            rows = []
            for index, packed in db.execute(query, (namespace,)):
                frames, gone = without(_unpack(bytes(packed)))
                if gone:
                    removed += gone
                    remaining = _pack(tuple(frame.SerializeToString() for frame in frames))
                    rows.append((remaining, _digest(frames), namespace, index))
            update = "UPDATE days SET frames = ?, kept_digest = ? WHERE namespace = ? AND day_index = ?"
            db.execute("BEGIN")
            try:
                db.executemany(update, rows)
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        return removed

    def remove(self, namespace: str) -> None:
        """Delete the days and batch ids of a namespace."""
        with self._guarded() as db:
            db.execute("DELETE FROM days WHERE namespace = ?", (namespace,))

    @contextmanager
    def _guarded(self) -> Iterator[sqlite3.Connection]:
        with self._mutex:
            try:
                yield self._db
            except sqlite3.Error as error:
                full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
                code = grpc.StatusCode.RESOURCE_EXHAUSTED if full else grpc.StatusCode.INTERNAL
                raise CallError(code, f"the day store {self._path.name} failed: {error}") from error


def _open(path: Path) -> sqlite3.Connection:
    """Open or create the database of a day store, and upgrade version 1. Raises StoreError."""
    try:
        # In autocommit mode each statement is its own transaction; only rewrite() needs a longer one and begins it.
        db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            # A forgotten namespace leaves no words behind in free pages.
            db.execute("PRAGMA secure_delete = ON")
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            if version == 0:
                db.executescript(_SCHEMA)
            elif version == 1:
                db.executescript(_FROM_VERSION_1)
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened as a day store: {error}") from error
    if version > STORE_VERSION:
        db.close()
        raise StoreError(f"{path}: day store of version {version}, this backend reads up to {STORE_VERSION}")
    return db


def _pack(frames: tuple[bytes, ...]) -> bytes:
    return zlib.compress(b"".join(_LENGTH.pack(len(frame)) + frame for frame in frames), level=1)


def _unpack(packed: bytes) -> list[pb.IngestRequest]:
    """Return the frames of packed bytes. Raises zlib.error, struct.error or DecodeError for other bytes."""
    data = zlib.decompress(packed)
    frames, position = [], 0
    while position < len(data):
        (size,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        frames.append(pb.IngestRequest.FromString(data[position : position + size]))
        position += size
    return frames


def _digest(frames: list[pb.IngestRequest]) -> bytes:
    digest = DayDigest()
    for frame in frames:
        digest.add(frame)
    return digest.digest()


def _read_day(digest: bytes, packed: bytes) -> Day:
    assembler = DayAssembler()
    try:
        for frame in _unpack(packed):
            assembler.add(frame)
        return assembler.finish_stored(digest).day
    except (zlib.error, struct.error, DecodeError, CallError) as error:
        raise data_loss(f"a stored day cannot be read back: {error}") from error
