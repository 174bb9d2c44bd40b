"""Which runs there are, and the state of each: what a look at the log tells without scoring it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic_core import from_json

from memarena.log.records import Manifest
from memarena.log.store import LOCK_NAME, LOG_NAME, LogError, LogReader, log_path
from memarena.viewer.errors import ViewerError

DEEPEST = 3
"""Folders below the given one in which runs are looked for."""
State = Literal["completed", "incomplete", "interrupted", "aborted", "being written", "stopped", "empty", "unreadable"]
"""``stopped``: no process said how it ended, and none writes; ``being written`` where one does, or where it cannot be
told."""


@dataclass(frozen=True)
class FoundRun:
    """A folder that holds a log. ``key`` names it in addresses, the same as long as it stays where it is."""

    key: str
    name: str
    """Its path below the folder that was asked for, or its own name."""
    folder: Path


@dataclass(frozen=True)
class Position:
    """How far a log reaches: two that are equal hold the same."""

    size_bytes: int
    changed_ns: int


@dataclass(frozen=True)
class RunHead:
    """A run at first sight."""

    run: FoundRun
    state: State
    fault: str = ""
    """Why the log cannot be read, in one line."""
    run_id: str = ""
    started_at: str = ""
    message: str = ""
    """What the process said that ended it."""
    manifest: Manifest | None = None
    families: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    """Attempts by cell, at most the questions of a cell."""
    records: int = 0

    @property
    def questions(self) -> int:
        """Questions of one cell."""
        return sum(self.families.values())

    @property
    def planned(self) -> int:
        """Questions of all cells."""
        return self.questions * len(self.manifest.cells) if self.manifest else 0

    @property
    def asked_in_all(self) -> int:
        """Questions asked so far, in all cells."""
        return sum(self.asked.values())

    @property
    def comparable_with(self) -> object:
        """Runs in which this is equal may share a table: same data set, protocol and questions."""
        if self.manifest is None:
            return self.run.key
        manifest = self.manifest
        families = tuple(sorted(self.families.items()))
        d6_rules = tuple(sorted({cell.reading.d6_rules for cell in manifest.cells}))
        return manifest.dataset.sha256, manifest.protocol, manifest.question_filter, families, d6_rules


def find_runs(paths: Sequence[Path]) -> list[FoundRun]:
    """The runs at or below the paths, in their order, each once. Raises ViewerError for a path that holds none."""
    found: dict[Path, FoundRun] = {}
    for path in paths:
        folder = path.parent if path.name == LOG_NAME and path.is_file() else path
        if not folder.is_dir():
            raise ViewerError(f"{path}: no such folder; expected a run, or a folder with runs")
        here = list(_below(folder, DEEPEST))
        if not here:
            raise ViewerError(f"{path}: no run here ({LOG_NAME}), nor up to {DEEPEST} folders below")
        for one in here:
            absolute = one.resolve()
            name = absolute.name if one == folder else one.relative_to(folder).as_posix()
            found.setdefault(absolute, FoundRun(_key(absolute), name, absolute))
    return list(found.values())


def _below(folder: Path, depth: int) -> Iterator[Path]:
    if log_path(folder).is_file():
        yield folder
    if depth:
        try:
            inner = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
        except OSError:
            return
        for each in inner:
            yield from _below(each, depth - 1)


def _key(folder: Path) -> str:
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).strip("-.")[:40] or "run"
    return f"{readable}-{hashlib.sha256(str(folder).encode(errors='surrogateescape')).hexdigest()[:6]}"


def position(folder: Path) -> Position:
    """How far the log of a run reaches now, its write-ahead part included."""
    size = changed = 0
    for path in (log_path(folder), folder / f"{LOG_NAME}-wal"):
        try:
            status = path.stat()
        except OSError:
            continue
        if path.name == LOG_NAME or status.st_size:
            size, changed = size + status.st_size, max(changed, status.st_mtime_ns)
    return Position(size, changed)


class Heads:
    """Heads of runs, read again where a log has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Position, RunHead]] = {}

    def of(self, run: FoundRun) -> RunHead:
        """The head of a run as it is now."""
        now = position(run.folder)
        known = self._known.get(run.folder)
        if known is not None and known[0] == now and known[1].state != "being written":
            return known[1]
        head = read_head(run)
        self._known[run.folder] = now, head
        return head


def read_head(run: FoundRun) -> RunHead:
    """What the log says first, and how it ended."""
    try:
        return _read(run)
    except LogError as error:
        return RunHead(run, "unreadable", fault=str(error))


def _read(run: FoundRun) -> RunHead:
    with LogReader(run.folder) as log:
        started = next((r for r in log.records("run_started") if r.kind == "run_started"), None)
        if started is None:
            return RunHead(run, "empty", fault="The log holds no run yet.")
        last = None
        for record in log.records("run_resumed", "run_ended"):
            last = record
        families = Counter(_families(row.body for row in log.rows("question")))
        questions = sum(families.values())
        asked = {cell: min(count, questions) for cell, count in log.counts("asked").items()}
        records = log.last_seq()
    ended = last if last is not None and last.kind == "run_ended" else None
    state: State = ended.reason if ended else "being written" if _is_written(run.folder) is not False else "stopped"
    return RunHead(
        run,
        state,
        run_id=started.run_id,
        started_at=started.started_at,
        message=ended.message if ended else "",
        manifest=started.manifest,
        families=dict(families),
        asked=asked,
        records=records,
    )


def _families(bodies: Iterable[str]) -> Iterator[str]:
    for body in bodies:
        try:
            yield str(from_json(body)["instance"]["family"])
        except (ValueError, KeyError, TypeError) as error:
            raise LogError(f"a question of the log does not parse: {error}") from error


def _is_written(folder: Path) -> bool | None:
    """Whether a process holds the writer's lock. Looked up, never taken: a writer that begins must find it free."""
    try:
        inode = (folder / LOCK_NAME).stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None if (folder / LOCK_NAME).exists() else False
    return any(f":{inode} " in line and "FLOCK" in line for line in locks.splitlines())
