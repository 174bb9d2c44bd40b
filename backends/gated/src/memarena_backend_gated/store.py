"""Records on disk, so that a person can read them; what counts is made from the committed days after each restart."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_backend import ServeError
from pydantic import TypeAdapter

from memarena_backend_gated.records import Record

STORE_NAME = "gate.sqlite"

_RECORDS = TypeAdapter(list[Record])
_SCHEMA = """
CREATE TABLE IF NOT EXISTS days (
    namespace TEXT NOT NULL,
    day_index INTEGER NOT NULL,
    records TEXT NOT NULL,
    people TEXT NOT NULL,
    PRIMARY KEY (namespace, day_index)
);
CREATE TABLE IF NOT EXISTS extraction (id INTEGER PRIMARY KEY CHECK (id = 0), name TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class StoredDay:
    """Records of a day; ``people`` are the display names of the namespace by participant id."""

    namespace: str
    day_index: int
    records: Sequence[Record]
    people: Mapping[str, str]


class RecordStore:
    """Records by namespace and day, all read by the same extraction. Safe to share between threads.

    Raises ServeError if the file cannot be opened, or holds records that another extraction read.
    """

    def __init__(self, path: Path | str, extraction: str = "rules") -> None:
        self._mutex = threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            # A forgotten namespace leaves no words behind in free pages.
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.executescript(_SCHEMA)
            self._note_extraction(path, extraction)
        except sqlite3.Error as error:
            raise ServeError(f"{path}: cannot be opened: {error}") from error

    def _note_extraction(self, path: Path | str, extraction: str) -> None:
        """Note who reads wishes, so that a restart with another setting does not pass records off as its own."""
        noted = [name for (name,) in self._db.execute("SELECT name FROM extraction")]
        if noted == [extraction]:
            return
        if self._db.execute("SELECT EXISTS (SELECT 1 FROM days)").fetchone()[0]:
            reader = noted[0] if noted else "an earlier version"
            raise ServeError(
                f"{path}: holds records read by {reader}, but GATED_EXTRACTION is {extraction}: expected "
                f"{f'{reader}, or ' if noted else ''}another data folder"
            )
        self._db.execute("INSERT OR REPLACE INTO extraction VALUES (0, ?)", (extraction,))

    @classmethod
    def in_memory(cls) -> RecordStore:
        """A store that ends with the process."""
        return cls(":memory:")

    def put(self, namespace: str, day_index: int, records: Sequence[Record], people: Mapping[str, str]) -> None:
        """Keep the records of a day in the place of those that it had."""
        row = (namespace, day_index, _RECORDS.dump_json(list(records)).decode(), json.dumps(dict(people)))
        with self._mutex:
            self._db.execute("INSERT OR REPLACE INTO days VALUES (?,?,?,?)", row)

    def records(self, namespace: str) -> dict[int, list[Record]]:
        """The records of a namespace by day."""
        with self._mutex:
            rows = self._db.execute("SELECT day_index, records FROM days WHERE namespace = ?", (namespace,)).fetchall()
        return {index: _RECORDS.validate_json(records) for index, records in rows}

    def remove(self, namespace: str) -> None:
        """Forget a namespace."""
        with self._mutex:
            self._db.execute("DELETE FROM days WHERE namespace = ?", (namespace,))

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            self._db.close()


def read_store(path: Path) -> list[StoredDay]:
    """All days of a file, by namespace and day, also while a backend writes to it. Raises OSError or ValueError."""
    try:
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            rows = db.execute("SELECT namespace, day_index, records, people FROM days ORDER BY 1, 2").fetchall()
        finally:
            db.close()
    except sqlite3.Error as error:
        raise OSError(f"{path}: cannot be read: {error}") from error
    return [StoredDay(row[0], row[1], _RECORDS.validate_json(row[2]), json.loads(row[3])) for row in rows]
