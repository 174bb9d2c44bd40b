"""The log's file: an SQLite database in WAL mode that only ever grows.

One process writes (an advisory lock beside the file says so), any number read. Triggers refuse UPDATE and DELETE, so
that not even a stray tool can change what a run wrote. Large texts are kept once, in a table of their own
(:mod:`memarena.log.texts`); whoever reads a record gets it whole.

Schema version 1 had no such table: its bodies hold everything. It is read as it is, and gets the table when it is
written to again; what stands in it stays as it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, Self, TypeVar

from pydantic import ValidationError

from memarena.log.packing import Body, pack, unpack
from memarena.log.records import RECORD_ADAPTER, SCHEMA_VERSION, AnyRecord
from memarena.log.texts import TEXTS_SCHEMA, TextReader, TextWriter

LOG_NAME = "run.sqlite"
R = TypeVar("R")

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
"""  # noqa: S608 (a constant of ours)
_FROM_VERSION_1 = f"{TEXTS_SCHEMA}; UPDATE meta SET value = '2' WHERE key = 'schema_version';"  # noqa: S608 (a constant of ours)


class LogError(Exception):
    """The log cannot be used; the message is one line for the user."""


class LogFullError(LogError):
    """The disk is full or the log cannot be written; what was written before stays intact."""


def log_path(run_dir: Path) -> Path:
    """Path of the log within a run directory."""
    return run_dir / LOG_NAME


def check_log(run_dir: Path) -> None:
    """Raise LogError unless the folder holds a run log."""
    if not log_path(run_dir).exists():
        raise LogError(f"{run_dir}: no run log ({LOG_NAME}) in this folder")


class LogWriter:
    """The one writer of a run's log. Safe to share between threads.

    ``append`` makes a record durable against the death of this process (WAL, one commit per call); records given
    together are committed together.

    Raises :class:`LogError` if another process writes, the file is no log or its schema is newer, and
    :class:`LogFullError` when a write fails.
    """

    @classmethod
    def of_run(cls, run_dir: Path) -> LogWriter:
        """The writer of a log that is there already. Raises LogError if there is none, and then writes nothing.

        A file without tables counts as none: only a run begins a log.
        """
        check_log(run_dir)
        check_schema(log_path(run_dir))
        return cls(run_dir)

    def __init__(self, run_dir: Path) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self._path = log_path(run_dir)
        self._lock_file: IO[str] = (run_dir / "writer.lock").open("a")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock_file.close()
            raise LogError(f"{self._path}: another process is writing this log") from error
        self._mutex = threading.Lock()
        try:
            self._db = self._open()
        except BaseException:
            self._lock_file.close()
            raise
        self._texts = TextWriter(self._db)

    def _open(self) -> sqlite3.Connection:
        fresh = is_blank(self._path)
        version = SCHEMA_VERSION if fresh else check_schema(self._path)
        db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            if fresh:
                db.executescript(f"BEGIN;{_SCHEMA}COMMIT;")
            elif version == 1:
                db.executescript(f"BEGIN;{_FROM_VERSION_1}COMMIT;")
        except sqlite3.Error as error:
            db.close()
            raise LogFullError(f"{self._path}: cannot create the log: {error}") from error
        return db

    def append(self, *records: AnyRecord) -> None:
        """Append records in one transaction."""
        with self._mutex:
            try:
                self._db.execute("BEGIN")
                rows = [(r.kind, getattr(r, "cell_id", None), _instance_id(r), pack(r, self._texts)) for r in records]
                self._db.executemany("INSERT INTO records (kind, cell_id, instance_id, body) VALUES (?,?,?,?)", rows)
                self._db.execute("COMMIT")
                self._texts.settle(kept=True)
            except BaseException as error:
                # Ctrl-C too: a transaction left open would refuse the records that say how the run ended.
                self._texts.settle(kept=False)
                with contextlib.suppress(sqlite3.Error):
                    self._db.rollback()
                if isinstance(error, sqlite3.Error):
                    raise LogFullError(f"{self._path}: cannot write to the log: {error}") from error
                raise

    def close(self) -> None:
        """Fold the write-ahead log into the file and release the lock. Calling it twice is fine."""
        with self._mutex:
            self._db.close()
            self._lock_file.close()

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
    """Schema version of a log. Raises :class:`LogError` if it is no log, or newer than this program."""
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


def read_records(run_dir: Path, *kinds: str, cell_id: str | None = None) -> Iterator[AnyRecord]:
    """Records of the given kinds (all if none is given) in the order in which they were written, each whole.

    Raises :class:`LogError` if there is no log, it is newer than this program, or a record does not parse.
    """
    with LogReader(run_dir) as log:
        yield from log.records(*kinds, cell_id=cell_id)


class Row(NamedTuple):
    """A record as it is stored; its body may name texts that stand elsewhere in the log."""

    seq: int
    kind: str
    body: str


class LogReader:
    """Reads a run's log, also while it is written.

    Raises :class:`LogError` if there is no log or it is newer than this program; reading does if the file is damaged
    or a record does not parse.
    """

    def __init__(self, run_dir: Path) -> None:
        check_log(run_dir)
        self._path = log_path(run_dir)
        check_schema(self._path)
        self._db = _open_to_read(self._path)
        self.texts = TextReader(self._db)

    def rows(self, *kinds: str, cell_id: str | None = None) -> Iterator[Row]:
        """Rows of the given kinds (all if none is given) in the order in which they were written."""
        clauses: list[str] = []
        arguments: list[str] = []
        if kinds:
            clauses.append(f"kind IN ({','.join('?' * len(kinds))})")
            arguments += kinds
        if cell_id is not None:
            clauses.append("cell_id = ?")
            arguments.append(cell_id)
        where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        query = f"SELECT seq, kind, body FROM records{where} ORDER BY seq"  # noqa: S608 (placeholders only)
        try:
            for seq, kind, body in self._db.execute(query, arguments):
                yield Row(seq, kind, body)
        except sqlite3.Error as error:
            raise LogError(f"{self._path}: cannot be read: {error}") from error

    def records(self, *kinds: str, cell_id: str | None = None) -> Iterator[AnyRecord]:
        """Records of the given kinds, each whole."""
        return self.parsed(lambda row: _parsed(unpack(row.kind, row.body, lambda: self.texts)), *kinds, cell_id=cell_id)

    def parsed(self, parse: Callable[[Row], R], *kinds: str, cell_id: str | None = None) -> Iterator[R]:
        """What ``parse`` makes of each row; a row that it cannot read is named in the LogError."""
        for row in self.rows(*kinds, cell_id=cell_id):
            try:
                if not isinstance(row.body, str):
                    raise ValueError("its body is no text")
                made = parse(row)
            except (ValidationError, sqlite3.Error, KeyError, ValueError, zlib.error) as error:
                raise LogError(f"{self._path}: {_unread(row, error)}") from error
            yield made

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Raises sqlite3.Error if the file cannot be read."""
    # As a URI a path has its special characters quoted; a bare "#" would open another file.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_CANTOPEN or not path.is_file():
            raise
        # A reader of a write-ahead log makes a file beside it, which a medium that takes no writing does not let it.
        if _has_wal(path):
            raise _UnreadableHereError(
                f"its folder takes no new file, and what is in {path.name}-wal can only be read there with one; "
                "copy the folder to where it can be written"
            ) from error
        # Nothing waits in a write-ahead log, so the file is whole and can be read as it is.
        return sqlite3.connect(f"{uri}&immutable=1", uri=True)
    except sqlite3.Error:
        db.close()
        raise
    return db


class _UnreadableHereError(sqlite3.OperationalError):
    """A log that can only be read where something can be written beside it."""


def _has_wal(path: Path) -> bool:
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


def _unread(row: Row, error: Exception) -> str:
    """Why a row could not be read, in one line."""
    if isinstance(error, sqlite3.Error):
        return f"cannot be read: {error}"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        where = ".".join((row.kind, *(str(part) for part in first["loc"] if part != row.kind)))
        return f"record {row.seq} does not parse: {where}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"record {row.seq} does not parse: it lacks {error}"
    return f"record {row.seq} does not parse: {error}"


def _parsed(body: str | Body) -> AnyRecord:
    return RECORD_ADAPTER.validate_json(body) if isinstance(body, str) else RECORD_ADAPTER.validate_python(body)


def _instance_id(record: AnyRecord) -> str | None:
    if record.kind == "question":
        return record.instance.instance_id
    return getattr(record, "instance_id", None)
