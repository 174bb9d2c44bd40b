"""Defines a run's cache, the SQLite file that the viewer's pages query: its schema, key and location.

The cache is filled from the log through :mod:`memarena.evaluation` and replaced when the log has grown. It lies in the
user's cache folder, not in the run's; deleting it loses nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from memarena.judging import value_judge_version
from memarena.report.charts.catalogue import Chart
from memarena.viewer.found_runs import Position, position

CACHE_VERSION = 4
"""Incremented whenever the tables or their contents change."""
CHARTS: TypeAdapter[list[Chart]] = TypeAdapter(list[Chart])
"""JSON of the charts in a cache."""
KEPT_DAYS = 30
"""Days without use after which a cache is removed."""

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cells (
    cell INTEGER PRIMARY KEY, cell_id TEXT NOT NULL UNIQUE, row TEXT NOT NULL, seed TEXT NOT NULL,
    headline INTEGER NOT NULL
);
CREATE TABLE questions (
    q INTEGER PRIMARY KEY, instance_id TEXT NOT NULL UNIQUE, family TEXT NOT NULL, dimension TEXT NOT NULL,
    ego TEXT NOT NULL, day INTEGER NOT NULL, lag_days INTEGER, lag TEXT, difficulty TEXT, tier TEXT, interference TEXT,
    action TEXT, apart INTEGER NOT NULL, text TEXT NOT NULL, asker TEXT NOT NULL
);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, cell INTEGER NOT NULL, q INTEGER NOT NULL, outcome TEXT NOT NULL, stage TEXT, label TEXT,
    ground TEXT, route TEXT, attempts INTEGER NOT NULL, found REAL, first_rank INTEGER, search_ms REAL, ttft_ms REAL,
    tokens INTEGER, calls INTEGER
);
CREATE TABLE answer_texts (id INTEGER PRIMARY KEY, answer TEXT NOT NULL, why TEXT NOT NULL, score TEXT NOT NULL);
"""
INDEXES = """
CREATE UNIQUE INDEX answers_by_cell ON answers (cell, q);
CREATE INDEX answers_by_question ON answers (q, cell, outcome);
CREATE INDEX answers_by_outcome ON answers (outcome, cell, q);
CREATE INDEX questions_by_family ON questions (family);
ANALYZE;
"""


@dataclass(frozen=True)
class CacheKey:
    """Log, judge and version from which a cache was made."""

    cache_version: int
    judge: str
    judge_version: str
    folder: str
    position: Position

    def as_json(self) -> str:
        """Return the key as JSON, as the cache stores it."""
        log_position = [self.position.size_bytes, self.position.changed_ns]
        return json.dumps([self.cache_version, self.judge, self.judge_version, self.folder, log_position])


Fit = Literal["none", "older", "current"]
"""Whether a cache is of a key's log and judge. ``older``: of both, but made before the log has changed."""


def key_of(folder: Path, judge: str) -> CacheKey:
    """Return the key of a run's log in its present state."""
    return CacheKey(CACHE_VERSION, judge, value_judge_version(), str(folder), position(folder))


def users_caches() -> Path:
    """Return the default folder of caches, created if missing: in the user's cache folder, readable only for the user.

    If that cannot be written, a folder in the system's temporary folder. Raises OSError if another user owns it.
    """
    home = os.environ.get("XDG_CACHE_HOME")
    base = Path(home) if home else Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    preferred = base / "memarena" / "viewer"
    try:
        preferred.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=preferred):
            return preferred
    except OSError:
        fallback = Path(tempfile.gettempdir()) / f"memarena-viewer-{os.getuid()}"
        fallback.mkdir(mode=0o700, exist_ok=True)
        if fallback.stat().st_uid != os.getuid():
            raise
        return fallback


def cache_path(caches: Path, folder: Path, judge: str) -> Path:
    """Return the path of the cache of a run under a judge, in the folder of caches."""
    name = hashlib.sha256(f"{folder}\0{judge}".encode(errors="surrogateescape")).hexdigest()[:32]
    return caches / f"{name}.sqlite"


@dataclass(frozen=True)
class BestRow:
    """The row of a run with the highest *answerable*; a diagnostic row only if there is no other."""

    memory: str
    reader: str
    answerable: str
    """Percent, formatted as in the grid; so is ``right``."""
    right: str


BEST: TypeAdapter[BestRow | None] = TypeAdapter(BestRow | None)
"""JSON of the best row in a cache; None if no memory was asked a question."""


def best_row(path: Path, key: CacheKey) -> BestRow | None:
    """Return the best row of a run from its cache, current or older; None if there is no cache."""
    if fit(path, key) == "none":
        return None
    try:
        with opened(path) as db:
            (stored,) = db.execute("SELECT value FROM meta WHERE key = 'best'").fetchone()
            return BEST.validate_json(stored)
    except (sqlite3.Error, OSError):
        return None  # removed or replaced meanwhile


def fit(path: Path, key: CacheKey) -> Fit:
    """Return whether the cache at ``path`` has this key, an older state of it, or is missing or of another key."""
    try:
        with opened(path) as db:
            (stored,) = db.execute("SELECT value FROM meta WHERE key = 'key'").fetchone()
    except (sqlite3.Error, TypeError, OSError):
        return "none"
    if stored == key.as_json():
        return "current"
    # All but the log's position, which is last.
    same = json.loads(stored)[:4] == json.loads(key.as_json())[:4]
    return "older" if same else "none"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a cache for reading only. Raises sqlite3.Error if it cannot be opened."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    db.row_factory = sqlite3.Row
    try:
        yield db
    finally:
        db.close()


def remove_old(caches: Path, now: float | None = None) -> None:
    """Remove caches not used for :data:`KEPT_DAYS`. ``now``: seconds since the epoch; None: the clock."""
    oldest = (time.time() if now is None else now) - KEPT_DAYS * 86_400
    for path in caches.glob("*.sqlite*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def touch(path: Path) -> None:
    """Mark a cache as used now."""
    with contextlib.suppress(OSError):
        os.utime(path)
