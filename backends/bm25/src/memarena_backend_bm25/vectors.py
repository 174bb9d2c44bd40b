"""Keeps the vectors of passages on disk, next to the days, and reads them back as one matrix per namespace.

After a restart the kit restores committed days without access to any model, so vectors must survive the process. All
vectors of a namespace come from one model, since vectors of different models cannot be compared.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from memarena_backend import ServeError, failed_precondition, unavailable
from numpy.typing import NDArray

STORE_NAME = "vectors.sqlite"

Matrix = NDArray[np.float32]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS models (namespace TEXT PRIMARY KEY, model TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (
    namespace TEXT NOT NULL,
    text_sha256 BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (namespace, text_sha256)
) WITHOUT ROWID;
"""


class VectorStore:
    """Vectors by namespace and text. Safe to share between threads. Raises ServeError if the file cannot be opened."""

    def __init__(self, data_dir: Path) -> None:
        self._mutex = threading.Lock()
        try:
            self._db = sqlite3.connect(data_dir / STORE_NAME, check_same_thread=False, isolation_level=None)
            # No synchronous=FULL: vectors lost in a power cut can be computed again from the kit's durable days.
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ServeError(f"{data_dir / STORE_NAME}: cannot be opened: {error}") from error

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            self._db.close()

    def model_of(self, namespace: str) -> str | None:
        """Return the name of the model that made the namespace's vectors, None if it has no vectors yet."""
        with self._mutex:
            row = self._db.execute("SELECT model FROM models WHERE namespace = ?", (namespace,)).fetchone()
        return None if row is None else str(row[0])

    def missing(self, namespace: str, texts: Sequence[str]) -> list[str]:
        """Return the texts that have no vector yet, each once, in order."""
        with self._mutex:
            return [text for text in dict.fromkeys(texts) if self._get(namespace, text) is None]

    def add(self, namespace: str, model: str, texts: Sequence[str], vectors: Matrix) -> None:
        """Store a vector of unit length for each text; ``vectors`` has the shape (texts, dimensions).

        Raises CallError FAILED_PRECONDITION if the namespace belongs to another model.
        """
        check_same_model(self.model_of(namespace), model)
        rows = [(namespace, _sha(text), vector.tobytes()) for text, vector in zip(texts, vectors, strict=True)]
        with self._mutex:
            self._db.execute("BEGIN")
            try:
                self._db.execute("INSERT OR IGNORE INTO models VALUES (?,?)", (namespace, model))
                self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?,?,?)", rows)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def matrix(self, namespace: str, texts: Sequence[str]) -> Matrix:
        """Return the vectors of the texts, shape (texts, dimensions).

        Raises CallError UNAVAILABLE if a text has no vector, or if the vectors differ in length.
        """
        with self._mutex:
            stored = [self._get(namespace, text) for text in texts]
        rows = [np.frombuffer(vector, dtype=np.float32) for vector in stored if vector is not None]
        if len(rows) < len(texts):
            missing = len(texts) - len(rows)
            raise unavailable(f"{missing} of {len(texts)} passages have lost their vectors; reset and ingest again")
        if len({len(row) for row in rows}) > 1:
            raise unavailable("the vectors of the namespace differ in length: its embedding model has changed")
        return np.stack(rows) if rows else np.empty((0, 0), dtype=np.float32)

    def remove(self, namespace: str) -> None:
        """Delete the vectors of a namespace and the name of its model."""
        with self._mutex:
            self._db.execute("DELETE FROM vectors WHERE namespace = ?", (namespace,))
            self._db.execute("DELETE FROM models WHERE namespace = ?", (namespace,))

    def _get(self, namespace: str, text: str) -> bytes | None:
        query = "SELECT vector FROM vectors WHERE namespace = ? AND text_sha256 = ?"
        row = self._db.execute(query, (namespace, _sha(text))).fetchone()
        return None if row is None else bytes(row[0])


def check_same_model(made_with: str | None, model: str) -> None:
    """Raise CallError FAILED_PRECONDITION if the namespace has vectors (of ``made_with``) and ``model`` is another."""
    if made_with is not None and made_with != model:
        raise failed_precondition(f"the namespace was embedded with {made_with}, this call offers {model}")


def unit_rows(vectors: Sequence[Sequence[float]]) -> Matrix:
    """Return the vectors as rows of unit length, so that a dot product is a cosine; a zero vector stays zero."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _sha(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
