"""Stores the texts of a log, each once: pieces are addressed by the hash of their content, and named by number.

Texts are the large strings of records: items, prompts, outputs; :mod:`memarena.log.serialization` replaces them in a
record's body by their numbers. A run repeats itself: the same turn is retrieved for many questions, the same prompt is
sent for every seed. Texts are cut at line ends into pieces, so that prompts which differ in a line share all others.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence

from memarena.log.sums import Sums, content_hash

TEXTS_SCHEMA = """
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    body NOT NULL
);
CREATE TRIGGER texts_no_update BEFORE UPDATE ON texts BEGIN SELECT RAISE(ABORT, 'the run log is append-only'); END;
CREATE TRIGGER texts_no_delete BEFORE DELETE ON texts BEGIN SELECT RAISE(ABORT, 'the run log is append-only'); END;
"""
"""``body`` is TEXT as it is, or a BLOB: the UTF-8 bytes as a zlib stream."""

LEAST_PIECE_CHARACTERS = 48
"""A piece ends at the first line end after this many characters: shorter pieces would cost more than they save."""
LEAST_PACKED_CHARACTERS = 64
"""Texts below this stay in the record's body."""
_LEAST_COMPRESSED_BYTES = 192
_KNOWN_HASHES = 200_000
"""Hashes that a writer remembers; others are looked up in the file."""
_CACHED_TEXTS = 100_000
"""Texts that a reader caches."""

# As few characters as possible from the minimum on, up to a line end or the end; or a shorter remainder.
_PIECE = re.compile(rf".{{{LEAST_PIECE_CHARACTERS},}}?(?:\n|\\n|\Z)|.+\Z", re.DOTALL)
"""Line ends also as JSON writes them within a string, since a prompt is logged as JSON."""


def pieces(text: str) -> list[str]:
    """Return the text cut at line ends; joined, the pieces are the text."""
    return _PIECE.findall(text)


def join_ids(ids: Sequence[int]) -> str:
    """Return numbers as text, with runs as ranges: ``3-5,9``."""
    runs: list[list[int]] = []
    for number in ids:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def split_ids(joined: str) -> list[int]:
    """Undo :func:`join_ids`. Raises ValueError for a text that it does not make."""
    numbers: list[int] = []
    for run in joined.split(",") if joined else ():
        first, dash, last = run.partition("-")
        numbers += range(int(first), int(last) + 1) if dash else (int(first),)
    return numbers


class TextWriter:
    """Puts texts into the log within the transaction of the record that names them. Not safe between threads."""

    def __init__(self, db: sqlite3.Connection, sums: Sums) -> None:
        self._db = db
        self._sums = sums
        self._known: dict[bytes, int] = {}
        self._fresh: list[bytes] = []

    def put(self, text: str) -> int:
        """Return the number of a text, which is written if the log does not have it yet."""
        raw = text.encode()
        digest = content_hash(raw)
        number_known = self._known.get(digest)
        if number_known is not None:
            return number_known
        row = self._db.execute("SELECT id FROM texts WHERE hash = ?", (digest,)).fetchone()
        if row is None:
            (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM texts").fetchone()
            number = int(last) + 1
            self._db.execute(
                "INSERT INTO texts (id, hash, body, sum) VALUES (?, ?, ?, ?)",
                (number, digest, _stored_form(text, raw), self._sums.text(number, digest)),
            )
        else:
            number = int(row[0])
        self._fresh.append(digest)
        self._known[digest] = number
        return number

    def end_transaction(self, *, kept: bool) -> None:
        """Remember the texts of the transaction that ended, or forget them if it was rolled back."""
        if not kept:
            for digest in self._fresh:
                self._known.pop(digest, None)
        self._fresh.clear()
        if len(self._known) > _KNOWN_HASHES:
            for digest in list(self._known)[: len(self._known) - _KNOWN_HASHES]:
                del self._known[digest]


def _stored_form(text: str, raw: bytes) -> str | bytes:
    if len(raw) < _LEAST_COMPRESSED_BYTES:
        return text
    # Compressed only if that saves a tenth.
    packed = zlib.compress(raw, 6)
    return packed if len(packed) < 0.9 * len(raw) else text


class TextReader:
    """Reads texts back by number, over the connection that reads the records."""

    def __init__(self, db: sqlite3.Connection, sums: Sums | None) -> None:
        self._db = db
        self._sums = sums
        self._query = f"SELECT body, hash, {'NULL' if sums is None else 'sum'} FROM texts WHERE id = ?"  # noqa: S608
        self._cache: dict[int, str] = {}

    def get(self, number: int) -> str:
        """Return a text. Raises KeyError if the log lacks this number, ValueError if the text is damaged or another."""
        cached = self._cache.get(number)
        if cached is not None:
            return cached
        row = self._db.execute(self._query, (number,)).fetchone()
        if row is None:
            raise KeyError(number)
        text = self._check_text(number, *row)
        if len(self._cache) >= _CACHED_TEXTS:
            self._cache.clear()
        self._cache[number] = text
        return text

    def _check_text(self, number: int, body: object, digest: object, stored_sum: object) -> str:
        """Return a stored text decompressed. Raises ValueError if a checksum does not match."""
        if not isinstance(body, str | bytes):
            raise ValueError(f"text {number}: expected characters or bytes")
        raw = body.encode() if isinstance(body, str) else zlib.decompress(body)
        if content_hash(raw) != digest:
            raise ValueError(f"text {number}: its checksum is that of another text")
        if self._sums is not None and number >= self._sums.texts_from and self._sums.text(number, digest) != stored_sum:
            raise ValueError(f"text {number}: its checksum is that of another number")
        return raw.decode()

    def verify(self) -> None:
        """Read every text once. Raises ValueError or zlib.error for a damaged text."""
        for (number,) in self._db.execute("SELECT id FROM texts ORDER BY id").fetchall():
            self.get(number)

    def hashes(self, last: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each text, up to ``last``, and the hash of its content. Raises as :meth:`verify`."""
        for (number,) in self._db.execute("SELECT id FROM texts ORDER BY id").fetchall():
            if last is not None and number > last:
                return
            yield number, content_hash(self.get(number).encode())

    def joined(self, numbers: Iterable[int]) -> str:
        """Return texts joined in order."""
        return "".join(self._each(numbers))

    def _each(self, numbers: Iterable[int]) -> Iterator[str]:
        for number in numbers:
            yield self.get(number)
