"""Stores a run's log: an SQLite database in WAL mode that only ever grows.

One process writes (an advisory lock next to the file enforces it), any number read. Triggers refuse UPDATE and DELETE,
so that no other tool can change what a run wrote either. Large texts are stored once, in a separate table
(:mod:`memarena.log.texts`); a reader of a record gets it complete.

Schema version 1 has no such table: its bodies hold everything. Version 2 has no checksums (:mod:`memarena.log.sums`),
and version 3 has notices as lines (:mod:`memarena.log.notices`). All can be read; when they are written to again, the
missing tables and columns are added, and old rows stay as they are.

A reader of all records detects missing ones: their numbers have no gap, and the last number is noted in the log when
it is closed, and next to it (``writer.lock``) with every transaction.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from memarena_dataset.errors import MemArenaError
from memarena_dataset.safe_files import acquire_lock
from pydantic import ValidationError

from memarena.log.records import RECORD_ADAPTER, SCHEMA_VERSION, AnyRecord
from memarena.log.serialization import Body, pack, unpack
from memarena.log.sums import LAST_SEQ, SUMS_SCHEMA, Sums, read_meta
from memarena.log.texts import TEXTS_SCHEMA, TextReader, TextWriter

LOG_NAME = "run.sqlite"
LOCK_NAME = "writer.lock"
R = TypeVar("R")
_MOST_CHARACTERS = 2000
"""Most characters of an error's message, which may quote a damaged record."""

_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE records (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    cell_id TEXT,
    instance_id TEXT,
    body TEXT NOT NULL
);
CREATE INDEX records_by_kind ON records (kind, cell_id);
CREATE INDEX records_by_instance ON records (instance_id) WHERE instance_id IS NOT NULL;
CREATE TRIGGER records_no_update BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'the run log is append-only'); END;
CREATE TRIGGER records_no_delete BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'the run log is append-only'); END;
{TEXTS_SCHEMA}
INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}');
{SUMS_SCHEMA}
"""  # noqa: S608 (a constant of ours)
_NEWER = f"UPDATE meta SET value = '{SCHEMA_VERSION}' WHERE key = 'schema_version';"  # noqa: S608 (a constant of ours)
_INSERT = "INSERT INTO records (seq, kind, cell_id, instance_id, body, sum) VALUES (?,?,?,?,?,?)"
_UPGRADES = {1: f"{TEXTS_SCHEMA}{SUMS_SCHEMA}{_NEWER}", 2: f"{SUMS_SCHEMA}{_NEWER}", 3: _NEWER}
"""SQL that brings a log of an older version up to date."""


class LogError(MemArenaError):
    """The log cannot be used. The message is one printable line for the user, even if it quotes damaged text."""

    def __init__(self, message: str) -> None:
        printable = "".join(character if character.isprintable() else " " for character in message[:_MOST_CHARACTERS])
        super().__init__(" ".join(printable.split()))


class LogFullError(LogError):
    """The disk is full or the log cannot be written; what was written before stays intact."""


def log_path(run_dir: Path) -> Path:
    """Return the path of the log within a run directory."""
    return run_dir / LOG_NAME


def check_log(run_dir: Path) -> None:
    """Raise LogError unless the folder holds a run log."""
    if not log_path(run_dir).exists():
        raise LogError(f"{run_dir}: no run log ({LOG_NAME}) in this folder")


def lock_log(run_dir: Path) -> int:
    """Become the only writer in a run's folder, which is created if needed. Close the descriptor to unlock.

    Raises :class:`LogError` if another process is the writer.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    try:
        return acquire_lock(run_dir / LOCK_NAME)
    except BlockingIOError as error:
        raise LogError(f"{log_path(run_dir)}: another process is writing this log") from error


class LogWriter:
    """The only writer of a run's log. Safe to share between threads.

    ``append`` makes a record durable against the death of this process (WAL, one commit per call); records given
    together are committed together. ``lock`` is a descriptor of :func:`lock_log` if the caller has locked the log
    already; the caller closes it.

    Raises :class:`LogError` if another process writes, the file is not a log or its schema is newer, and
    :class:`LogFullError` when a write fails.
    """

    @classmethod
    def of_run(cls, run_dir: Path) -> LogWriter:
        """Return the writer of an existing log. Raises LogError, and writes nothing, if there is no log.

        A file without tables counts as no log: only a run begins one.
        """
        check_log(run_dir)
        check_schema(log_path(run_dir))
        return cls(run_dir)

    def __init__(self, run_dir: Path, lock: int | None = None) -> None:
        self._path = log_path(run_dir)
        self._lock = lock_log(run_dir) if lock is None else os.dup(lock)
        self._mutex = threading.Lock()
        try:
            self._db = self._open()
            try:
                self._sums = self._state()
            except BaseException:
                self._db.close()
                raise
        except BaseException:
            os.close(self._lock)
            raise
        self._closed = self._wrote = False
        self._texts = TextWriter(self._db, self._sums)

    def _state(self) -> Sums:
        try:
            sums = Sums.of(read_meta(self._db))
            self._last_seq()
        except (sqlite3.Error, KeyError, ValueError) as error:
            raise LogError(f"{self._path}: damaged: what it says of itself cannot be read: {error}") from error
        assert sums is not None, "the log has just been brought to this version"
        return sums

    def _last_seq(self) -> int:
        """Read the last number from the file: a signal may interrupt between a commit and a variable's update."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()[0])

    def _open(self) -> sqlite3.Connection:
        """Open the database for writing; create its tables, or add those that an older version lacks."""
        fresh = is_blank(self._path)
        version = SCHEMA_VERSION if fresh else check_schema(self._path)
        db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            if fresh:
                db.executescript(f"BEGIN;{_SCHEMA}COMMIT;")
            elif version in _UPGRADES:
                db.executescript(f"BEGIN;{_UPGRADES[version]}COMMIT;")
        except sqlite3.Error as error:
            db.close()
            raise LogFullError(f"{self._path}: cannot create the log: {error}") from error
        return db

    def append(self, *records: AnyRecord) -> None:
        """Append records in one transaction."""
        with self._mutex:
            try:
                # Again: a second signal may have interrupted the rollback after the first.
                self._discard()
                self._wrote = True
                self._db.execute("BEGIN")
                last = self._last_seq()
                rows = [self._row(seq, record) for seq, record in enumerate(records, last + 1)]
                self._db.executemany(_INSERT, rows)
                self._db.execute("COMMIT")
                self._texts.end_transaction(kept=True)
            except BaseException as error:
                # Also after Ctrl-C: with an open transaction, the records of how the run ended could not be written.
                self._discard()
                if isinstance(error, sqlite3.Error):
                    raise LogFullError(f"{self._path}: cannot write to the log: {error}") from error
                raise

            self._note_last(last + len(rows))

    def _discard(self) -> None:
        """Roll back an unfinished transaction."""
        self._texts.end_transaction(kept=False)
        with contextlib.suppress(sqlite3.Error):
            self._db.rollback()

    def _row(self, seq: int, record: AnyRecord) -> tuple[int, str, str | None, str | None, str, bytes]:
        fields = record.kind, getattr(record, "cell_id", None), _instance_id(record), pack(record, self._texts)
        return seq, *fields, self._sums.record(seq, *fields)

    def _note_last(self, last: int) -> None:
        """Note the last record's number next to the log: a lost write-ahead log would lose records unnoticed."""
        # If the note cannot be written, only that check is lost.
        with contextlib.suppress(OSError):
            os.pwrite(self._lock, b"%020d\n" % last, 0)

    def close(self) -> None:
        """Fold the write-ahead log into the file and release the lock. Calling it twice is fine."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            self._discard()
            if self._wrote:
                # A full disk is reported when a record is written.
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (LAST_SEQ, str(self._last_seq())))
            self._db.close()
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_blank(path: Path) -> bool:
    """Whether there is no log yet: no file, or one whose writer was killed before it had made the tables."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    try:
        with contextlib.closing(_open_to_read(path)) as db:
            return not db.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.Error:
        return False


def check_schema(path: Path) -> int:
    """Return the schema version of a log. Raises :class:`LogError` if it is not a log, or newer than this program."""
    try:
        with contextlib.closing(_open_to_read(path)) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except _UnreadableHereError as error:
        raise LogError(f"{path}: cannot be read: {error}") from error
    except sqlite3.Error as error:
        raise LogError(f"{path}: not a run log: {error}") from error
    if row is None or not str(row[0]).isdigit():
        raise LogError(f"{path}: not a run log: it states no schema version")
    version = int(row[0])
    if version < 1:
        raise LogError(f"{path}: schema_version is {version}, expected 1 to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise LogError(
            f"{path}: schema_version is {version}, this memarena reads up to {SCHEMA_VERSION}; update memarena"
        )
    return version


def read_records(
    run_dir: Path, *kinds: str, cell_id: str | None = None, instance_id: str | None = None
) -> Iterator[AnyRecord]:
    """Yield complete records of these kinds (all if none is named) in the order in which they were written.

    ``cell_id``, ``instance_id``: only of this cell, of this question; an index of the log covers both.

    Raises :class:`LogError` if there is no log, it is newer than this program, or a record does not parse.
    """
    with LogReader(run_dir) as log:
        yield from log.records(*kinds, cell_id=cell_id, instance_id=instance_id)


class Row(NamedTuple):
    """A record as it is stored; its body may name texts in the texts table."""

    seq: int
    kind: str
    body: str


class LogPrefix(NamedTuple):
    """The beginning of a log: numbers of its last record and its last text, and a hash over all up to them."""

    records: int
    texts: int
    sha256: str


class LogReader:
    """Reads a run's log, even while it is written.

    Raises :class:`LogError` if there is no log or it is newer than this program; its methods raise it if the file is
    damaged or a record does not parse.
    """

    def __init__(self, run_dir: Path) -> None:
        check_log(run_dir)
        self._path = log_path(run_dir)
        check_schema(self._path)
        # Read before the records, of which more may be written meanwhile.
        self._noted = _read_last_note(run_dir)
        self._db = _open_to_read(self._path)
        try:
            self._sums = Sums.of(read_meta(self._db))
        except (sqlite3.Error, KeyError, ValueError) as error:
            self._db.close()
            raise LogError(f"{self._path}: damaged: what it says of itself cannot be read: {error}") from error
        self.texts = TextReader(self._db, self._sums)

    def rows(self, *kinds: str, cell_id: str | None = None, instance_id: str | None = None) -> Iterator[Row]:
        """Yield rows of these kinds (all if none is named), as stored, in the order in which they were written.

        If all rows are requested, a missing row raises LogError.
        """
        whole, last = not kinds and cell_id is None and instance_id is None, 0
        # Only the numbers of rows with checksums are known to have no gap.
        first_summed = self._sums.records_from if self._sums is not None else None
        for seq, kind, body, cell, instance, stored_sum in self._stored_rows(kinds, cell_id, instance_id):
            summed = first_summed is not None and seq >= first_summed
            gap = whole and summed and seq not in (last + 1, first_summed)
            if gap or seq <= last:
                raise LogError(f"{self._path}: damaged: record {seq} comes after record {last}")
            last = seq
            # Before the row is yielded, so that no caller works with a damaged record.
            if self._sums is not None and summed:
                text = body if isinstance(body, str) else ""
                if self._sums.record(seq, kind, cell, instance, text) != stored_sum:
                    raise LogError(f"{self._path}: damaged: record {seq} does not match its checksum")
            yield Row(seq, kind, body)
        most = max(self._noted, 0 if self._sums is None else self._sums.last_seq)
        if whole and last < most:
            raise LogError(
                f"{self._path}: damaged: it ends with record {last}, and {most} were written; "
                f"is {LOG_NAME}-wal missing? What was not written can be asked again with --resume"
            )

    def counts(self, kind: str) -> dict[str, int]:
        """Return by cell the number of records of a kind; only an index is read, no bodies."""
        query = "SELECT cell_id, count(*) FROM records WHERE kind = ? AND cell_id IS NOT NULL GROUP BY cell_id"
        return {str(cell): int(count) for cell, count in self._fetch(query, (kind,))}

    def last_seq(self) -> int:
        """Return the number of the last record; 0 in a log without records."""
        return int(self._fetch("SELECT coalesce(max(seq), 0) FROM records")[0][0])

    def _fetch(self, query: str, arguments: tuple[str | int, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, arguments).fetchall()
        except sqlite3.Error as error:
            raise LogError(f"{self._path}: cannot be read: {error}") from error

    def verify(self) -> None:
        """Read everything once, before a log is archived. Raises LogError for the first damaged record or text."""
        for _ in self.rows():
            pass
        try:
            self.texts.verify()
        except (sqlite3.Error, KeyError, ValueError, zlib.error) as error:
            raise LogError(f"{self._path}: damaged: {error}") from error

    def prefix(self, records: int | None = None, texts: int | None = None) -> LogPrefix:
        """Return the numbers of the last record and text up to these numbers (all if None), and a hash over all.

        Raises :class:`LogError` if the file cannot be read or a text is damaged.
        """
        digest, last, last_text = hashlib.sha256(), 0, 0
        for seq, kind, body, cell, instance, _ in self._stored_rows((), None, None):
            if records is not None and seq > records:
                break
            last = seq
            digest.update(json.dumps([seq, kind, cell, instance, body], default=repr).encode() + b"\n")
        try:
            for number, content in self.texts.hashes(texts):
                last_text = number
                digest.update(b"%d %b\n" % (number, content))
        except (sqlite3.Error, KeyError, ValueError, zlib.error) as error:
            raise LogError(f"{self._path}: damaged: {error}") from error
        return LogPrefix(last, last_text, digest.hexdigest())

    def kinds_after(self, seq: int) -> dict[str, int]:
        """Return by kind the number of records after the record with this number."""
        query = "SELECT kind, count(*) FROM records WHERE seq > ? GROUP BY kind ORDER BY kind"
        return {str(kind): int(count) for kind, count in self._fetch(query, (seq,))}

    def _stored_rows(
        self, kinds: tuple[str, ...], cell_id: str | None, instance_id: str | None
    ) -> Iterator[tuple[int, str, str, str, str, bytes]]:
        """Yield number, kind, body, cell, question and checksum of each row, in order, unchecked."""
        clauses: list[str] = []
        arguments: list[str] = []
        # The plus keeps SQLite from using the index by kind and cell, which finds a thousand records where the index
        # by question finds a few.
        plus = "" if instance_id is None else "+"
        if kinds:
            clauses.append(f"{plus}kind IN ({','.join('?' * len(kinds))})")
            arguments += kinds
        for column, value in ((f"{plus}cell_id", cell_id), ("instance_id", instance_id)):
            if value is not None:
                clauses.append(f"{column} = ?")
                arguments.append(value)
        condition = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        columns = f"seq, kind, body, cell_id, instance_id, {'NULL' if self._sums is None else 'sum'}"
        query = f"SELECT {columns} FROM records{condition} ORDER BY seq"  # noqa: S608 (placeholders only)
        try:
            yield from self._db.execute(query, arguments)
        except sqlite3.Error as error:
            raise LogError(f"{self._path}: cannot be read: {error}") from error

    def records(self, *kinds: str, cell_id: str | None = None, instance_id: str | None = None) -> Iterator[AnyRecord]:
        """Yield complete records of these kinds."""

        def whole(row: Row) -> AnyRecord:
            return _parse_record(unpack(row.kind, row.body, lambda: self.texts))

        return self.parsed(whole, *kinds, cell_id=cell_id, instance_id=instance_id)

    def parsed(
        self, parse: Callable[[Row], R], *kinds: str, cell_id: str | None = None, instance_id: str | None = None
    ) -> Iterator[R]:
        """Yield the result of ``parse`` for each row. Raises LogError, naming the row, if it cannot be parsed."""
        for row in self.rows(*kinds, cell_id=cell_id, instance_id=instance_id):
            try:
                if not isinstance(row.body, str):
                    raise ValueError("its body is no text")
                record = parse(row)
            except (ValidationError, sqlite3.Error, KeyError, ValueError, zlib.error) as error:
                raise LogError(f"{self._path}: {_unread_reason(row, error)}") from error
            yield record

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_last_note(run_dir: Path) -> int:
    """Return the number of the last record written, from the note next to the log; 0 if there is no note."""
    try:
        return int((run_dir / LOCK_NAME).read_bytes()[:21] or 0)
    except (OSError, ValueError):
        return 0


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open a log for reading. Raises sqlite3.Error if the file cannot be read."""
    # As a URI a path has its special characters quoted; a bare "#" would open another file.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_CANTOPEN or not path.is_file():
            raise
        # A reader of a write-ahead log creates a file next to it, which a read-only medium does not allow.
        if _has_wal(path):
            raise _UnreadableHereError(
                f"its folder takes no new file, and what is in {path.name}-wal can only be read there with one; "
                "copy the folder to where it can be written"
            ) from error
        # The write-ahead log is empty, so the file is complete and can be read as it is.
        return sqlite3.connect(f"{uri}&immutable=1", uri=True)
    except sqlite3.Error:
        db.close()
        raise
    return db


class _UnreadableHereError(sqlite3.OperationalError):
    """A log that can only be read if a file can be written next to it."""


def _has_wal(path: Path) -> bool:
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


def _unread_reason(row: Row, error: Exception) -> str:
    """Return why a row could not be read, in one line."""
    if isinstance(error, sqlite3.Error):
        return f"cannot be read: {error}"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        field = ".".join((row.kind, *(str(part) for part in first["loc"] if part != row.kind)))
        return f"record {row.seq} does not parse: {field}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"record {row.seq} does not parse: it lacks {error}"
    return f"record {row.seq} does not parse: {error}"


def _parse_record(body: str | Body) -> AnyRecord:
    return RECORD_ADAPTER.validate_json(body) if isinstance(body, str) else RECORD_ADAPTER.validate_python(body)


def _instance_id(record: AnyRecord) -> str | None:
    if record.kind == "question":
        return record.instance.instance_id
    return getattr(record, "instance_id", None)
