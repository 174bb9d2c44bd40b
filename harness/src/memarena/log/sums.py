"""Computes the checksums of a log, so that a file system that returns a damaged or misplaced page is noticed.

Every record and every text has a checksum, over its content and its number, and keyed with an id of the log: an intact
row at another position than it was written to does not match. Rows from before schema version 3 have none.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

SUMS_SCHEMA = """
ALTER TABLE records ADD COLUMN sum BLOB;
ALTER TABLE texts ADD COLUMN sum BLOB;
INSERT INTO meta VALUES ('log_id', lower(hex(randomblob(16))));
INSERT INTO meta SELECT 'summed_records_from', coalesce(max(seq), 0) + 1 FROM records;
INSERT INTO meta SELECT 'summed_texts_from', coalesce(max(id), 0) + 1 FROM texts;
"""
LAST_SEQ = "last_seq"
"""Key in ``meta`` of the number of the last record when the writer closed the log."""
_BYTES = 8
"""Length of a checksum: it detects damage, not forgery, since its key is in the log."""


@dataclass(frozen=True)
class Sums:
    """The checksums of one log. ``records_from`` and ``texts_from`` are the first numbers that have one."""

    log_id: bytes
    records_from: int
    texts_from: int
    last_seq: int = 0
    """Number of the last record when the log was closed; 0 if it was not closed."""

    @classmethod
    def of(cls, meta: Mapping[str, str]) -> Self | None:
        """Return a log's checksums by its ``meta``; None for an old log. Raises ValueError or KeyError if damaged."""
        if int(meta["schema_version"]) < 3:
            return None
        return cls(
            bytes.fromhex(meta["log_id"]),
            int(meta["summed_records_from"]),
            int(meta["summed_texts_from"]),
            int(meta.get(LAST_SEQ, 0)),
        )

    def record(self, seq: int, kind: str, cell_id: str | None, instance_id: str | None, body: str) -> bytes:
        """Return the checksum of a row of records."""
        fields = (str(seq), kind, cell_id or "", instance_id or "", body)
        return hashlib.blake2b("\x00".join(fields).encode(), digest_size=_BYTES, key=self.log_id).digest()

    def text(self, number: int, content_hash: bytes) -> bytes:
        """Return the checksum of a text, from the hash of its content."""
        return hashlib.blake2b(b"%d\x00%b" % (number, content_hash), digest_size=_BYTES, key=self.log_id).digest()


def read_meta(db: sqlite3.Connection) -> dict[str, str]:
    """Return the ``meta`` table of a log: its own description, by key."""
    return {str(key): str(value) for key, value in db.execute("SELECT key, value FROM meta")}


def content_hash(raw: bytes) -> bytes:
    """Return the hash by which equal texts are recognised, whatever their number."""
    return hashlib.blake2b(raw, digest_size=16).digest()
