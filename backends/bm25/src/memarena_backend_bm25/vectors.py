"""Vectors of passages: kept on disk beside the days, held as one matrix per namespace.

The kit gives committed days back after a restart without access to any model, so vectors have to outlive the process. A
namespace belongs to the model that made its vectors: those of another one cannot be compared with them.
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
            # What is lost in a power cut is made again: the days themselves are safe with the kit.
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
        """The model that made the namespace's vectors, None if it has none yet."""
        with self._mutex:
            row = self._db.execute("SELECT model FROM models WHERE namespace = ?", (namespace,)).fetchone()
        return None if row is None else str(row[0])

    def missing(self, namespace: str, texts: Sequence[str]) -> list[str]:
        """Those of the texts that have no vector yet, each once, in order."""
        with self._mutex:
            return [text for text in dict.fromkeys(texts) if self._get(namespace, text) is None]

    def add(self, namespace: str, model: str, texts: Sequence[str], vectors: Matrix) -> None:
        """Keep a vector for each text; shape (texts, dimensions), unit length.

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
        """The vectors of the texts, shape (texts, dimensions). Raises CallError UNAVAILABLE where one is missing."""
        with self._mutex:
            stored = [self._get(namespace, text) for text in texts]
        rows = [np.frombuffer(vector, dtype=np.float32) for vector in stored if vector is not None]
        if len(rows) < len(texts):
            lost = len(texts) - len(rows)
            raise unavailable(f"{lost} of {len(texts)} passages have lost their vectors; reset and ingest again")
        if len({len(row) for row in rows}) > 1:
            raise unavailable("the vectors of the namespace differ in length: its embedding model has changed")
        return np.stack(rows) if rows else np.empty((0, 0), dtype=np.float32)

    def remove(self, namespace: str) -> None:
        """Forget a namespace."""
        with self._mutex:
            self._db.execute("DELETE FROM vectors WHERE namespace = ?", (namespace,))
            self._db.execute("DELETE FROM models WHERE namespace = ?", (namespace,))

    def _get(self, namespace: str, text: str) -> bytes | None:
        query = "SELECT vector FROM vectors WHERE namespace = ? AND text_sha256 = ?"
        row = self._db.execute(query, (namespace, _sha(text))).fetchone()
        return None if row is None else bytes(row[0])


def check_same_model(made_with: str | None, model: str) -> None:
    """Raise CallError FAILED_PRECONDITION where vectors of two models would be compared."""
    if made_with is not None and made_with != model:
        raise failed_precondition(f"the namespace was embedded with {made_with}, this call offers {model}")


def unit_rows(vectors: Sequence[Sequence[float]]) -> Matrix:
    """Vectors as rows of unit length, so that a dot product is a cosine; a vector of zeros stays one."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _sha(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
