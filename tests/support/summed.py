"""Changes records of a log together with their checksums, as a forger with access to the file could.

The log's writer only appends, and a change without the checksum is reported as damage; tests of forgeries must get past
both to show what else detects them.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from memarena.log.sums import Sums, content_hash, read_meta


def put_body(path: Path, seq: int, body: str | bytes) -> None:
    """Replace the body of a record."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TRIGGER IF EXISTS records_no_update")
        db.execute("UPDATE records SET body = ? WHERE seq = ?", (body, seq))
        sums = Sums.of(read_meta(db))
        if sums is not None and seq >= sums.records_from:
            query = "SELECT kind, cell_id, instance_id FROM records WHERE seq = ?"
            kind, cell_id, instance_id = db.execute(query, (seq,)).fetchone()
            fitting = sums.record(seq, kind, cell_id, instance_id, body if isinstance(body, str) else "")
            db.execute("UPDATE records SET sum = ? WHERE seq = ?", (fitting, seq))


def put_text(path: Path, number: int, text: str) -> None:
    """Replace the content of a text."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TRIGGER IF EXISTS texts_no_update")
        sums = Sums.of(read_meta(db))
        assert sums is not None
        digest = content_hash(text.encode())
        fields = (digest, text, sums.text(number, digest), number)
        db.execute("UPDATE texts SET hash = ?, body = ?, sum = ? WHERE id = ?", fields)
