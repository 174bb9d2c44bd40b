"""Stores the gate's records on disk, for people to read (`explain.py`) and so that a model need not read days again.

After a restart the rules read the committed days again; records that a model made are loaded from here.
"""

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
    """The records of a day; ``people`` are the display names of the namespace by participant id."""

    namespace: str
    day_index: int
    records: Sequence[Record]
    people: Mapping[str, str]


class RecordStore:
    """Records by namespace and day, all made by the same extraction (``rules`` or ``model``). Thread-safe.

    Raises ServeError if the file cannot be opened, or has records of another extraction.
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
        """Note what reads wishes; raise ServeError if the file has records of another setting."""
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
        """Return a store that ends with the process."""
        return cls(":memory:")

    def put(self, namespace: str, day_index: int, records: Sequence[Record], people: Mapping[str, str]) -> None:
        """Store the records of a day, replacing earlier ones."""
        row = (namespace, day_index, _RECORDS.dump_json(list(records)).decode(), json.dumps(dict(people)))
        with self._mutex:
            self._db.execute("INSERT OR REPLACE INTO days VALUES (?,?,?,?)", row)

    def records(self, namespace: str) -> dict[int, list[Record]]:
        """Return the records of a namespace by day index."""
        with self._mutex:
            rows = self._db.execute("SELECT day_index, records FROM days WHERE namespace = ?", (namespace,)).fetchall()
        return {index: _RECORDS.validate_json(records) for index, records in rows}

    def remove(self, namespace: str) -> None:
        """Delete a namespace."""
        with self._mutex:
            self._db.execute("DELETE FROM days WHERE namespace = ?", (namespace,))

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            self._db.close()


def read_store(path: Path) -> list[StoredDay]:
    """Read all days of a file, ordered by namespace and day; a backend may be writing to it at the same time.

    Raises OSError if the file cannot be read, ValueError if its records have another form.
    """
    try:
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            rows = db.execute("SELECT namespace, day_index, records, people FROM days ORDER BY 1, 2").fetchall()
        finally:
            db.close()
    except sqlite3.Error as error:
        raise OSError(f"{path}: cannot be read: {error}") from error
    return [StoredDay(row[0], row[1], _RECORDS.validate_json(row[2]), json.loads(row[3])) for row in rows]
