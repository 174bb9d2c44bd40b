"""The cache of a run: one SQLite file with what its pages are queries on, beside nothing of the run itself.

It is filled once from the log through :mod:`memarena.evaluation` and replaced when the log has grown. Deleting it loses
nothing.
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
"""Raised whenever the tables or what they hold change."""
CHARTS: TypeAdapter[list[Chart]] = TypeAdapter(list[Chart])
"""Charts as a cache holds them."""
KEPT_DAYS = 30
"""A cache that was not looked at for so long is removed."""

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
    """What a cache was made from, and by what."""

    cache_version: int
    judge: str
    judge_version: str
    folder: str
    position: Position

    def as_json(self) -> str:
        """As it stands in the file."""
        place = [self.position.size_bytes, self.position.changed_ns]
        return json.dumps([self.cache_version, self.judge, self.judge_version, self.folder, place])


Fit = Literal["none", "older", "current"]
"""``older``: of the same run, before the log grew."""


def key_of(folder: Path, judge: str) -> CacheKey:
    """The key of a run's log as it is now."""
    return CacheKey(CACHE_VERSION, judge, value_judge_version(), str(folder), position(folder))


def users_caches() -> Path:
    """Where caches lie unless said otherwise: the user's cache folder, readable for nobody else."""
    home = os.environ.get("XDG_CACHE_HOME")
    base = Path(home) if home else Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    wanted = base / "memarena" / "viewer"
    try:
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except OSError:
        own = Path(tempfile.gettempdir()) / f"memarena-viewer-{os.getuid()}"
        own.mkdir(mode=0o700, exist_ok=True)
        if own.stat().st_uid != os.getuid():
            raise
        return own


def cache_path(caches: Path, folder: Path, judge: str) -> Path:
    """The cache of a run under a judge, in the folder of caches."""
    name = hashlib.sha256(f"{folder}\0{judge}".encode(errors="surrogateescape")).hexdigest()[:32]
    return caches / f"{name}.sqlite"


@dataclass(frozen=True)
class BestRow:
    """The memory of a run that comes first by *answerable*, diagnostics aside where there are others."""

    memory: str
    reader: str
    answerable: str
    """As the grid writes it, percent."""
    right: str


BEST: TypeAdapter[BestRow | None] = TypeAdapter(BestRow | None)
"""As a cache holds it; None: no memory was asked anything."""


def best_row(path: Path, key: CacheKey) -> BestRow | None:
    """The first row of a run, from a cache of this key or of the log before it grew; None where there is no cache."""
    if fit(path, key) == "none":
        return None
    try:
        with opened(path) as db:
            (stored,) = db.execute("SELECT value FROM meta WHERE key = 'best'").fetchone()
            return BEST.validate_json(stored)
    except (sqlite3.Error, OSError):
        return None  # removed or replaced meanwhile


def fit(path: Path, key: CacheKey) -> Fit:
    """Whether a cache is there for this key."""
    try:
        with opened(path) as db:
            (stored,) = db.execute("SELECT value FROM meta WHERE key = 'key'").fetchone()
    except (sqlite3.Error, TypeError, OSError):
        return "none"
    if stored == key.as_json():
        return "current"
    same = json.loads(stored)[:4] == json.loads(key.as_json())[:4]
    return "older" if same else "none"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A cache to read from; nothing is written to it. Raises sqlite3.Error if it is none."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    db.row_factory = sqlite3.Row
    try:
        yield db
    finally:
        db.close()


def remove_old(caches: Path, now: float | None = None) -> None:
    """Remove caches that were not looked at for :data:`KEPT_DAYS`."""
    oldest = (time.time() if now is None else now) - KEPT_DAYS * 86_400
    for path in caches.glob("*.sqlite*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def touch(path: Path) -> None:
    """Note that a cache was looked at."""
    with contextlib.suppress(OSError):
        os.utime(path)
