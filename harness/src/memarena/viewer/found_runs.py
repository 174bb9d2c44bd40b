"""Finds the runs in folders and reads the state of each from its log, without scoring it."""

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
"""Levels of folders below the path of the user in which runs are searched."""
State = Literal["completed", "incomplete", "interrupted", "aborted", "being written", "stopped", "empty", "unreadable"]
"""``stopped``: the log has no end, and no process writes it. ``being written``: a process does, or that is unknown."""


@dataclass(frozen=True)
class FoundRun:
    """A folder with a log. ``key`` identifies it in addresses; it depends only on the folder's path."""

    key: str
    name: str
    """Path relative to the folder that was searched; the folder's own name if that folder is the run."""
    folder: Path


@dataclass(frozen=True)
class Position:
    """Size and time of change of a log; two equal positions of a log mean the same content."""

    size_bytes: int
    changed_ns: int


@dataclass(frozen=True)
class RunHead:
    """State and settings of a run, read from its log without scoring."""

    run: FoundRun
    state: State
    fault: str = ""
    """Why the log cannot be read, in one line."""
    run_id: str = ""
    started_at: str = ""
    message: str = ""
    """Message with which the run ended; empty if it has none."""
    manifest: Manifest | None = None
    families: dict[str, int] = field(default_factory=dict)
    """Questions by family."""
    asked: dict[str, int] = field(default_factory=dict)
    """Attempts by cell id, at most the number of questions of a cell."""
    records: int = 0

    @property
    def questions(self) -> int:
        """Number of questions of one cell."""
        return sum(self.families.values())

    @property
    def planned(self) -> int:
        """Number of questions of all cells."""
        return self.questions * len(self.manifest.cells) if self.manifest else 0

    @property
    def asked_in_all(self) -> int:
        """Number of questions asked so far in all cells."""
        return sum(self.asked.values())

    @property
    def comparable_with(self) -> object:
        """Key of comparison: runs with equal keys (data set, protocol, questions, D6 rules) may share a table."""
        if self.manifest is None:
            return self.run.key
        manifest = self.manifest
        families = tuple(sorted(self.families.items()))
        d6_rules = tuple(sorted({cell.reading.d6_rules for cell in manifest.cells}))
        return manifest.dataset.sha256, manifest.protocol, manifest.question_filter, families, d6_rules


def find_runs(paths: Sequence[Path]) -> list[FoundRun]:
    """Return the runs at or below the paths, in the order of the paths, each once.

    Raises ViewerError for a path without a run.
    """
    runs: dict[Path, FoundRun] = {}
    for path in paths:
        folder = path.parent if path.name == LOG_NAME and path.is_file() else path
        if not folder.is_dir():
            raise ViewerError(f"{path}: no such folder; expected a run, or a folder with runs")
        folders = list(_below(folder, DEEPEST))
        if not folders:
            raise ViewerError(f"{path}: no run here ({LOG_NAME}), nor up to {DEEPEST} folders below")
        for run_folder in folders:
            resolved = run_folder.resolve()
            name = resolved.name if run_folder == folder else run_folder.relative_to(folder).as_posix()
            runs.setdefault(resolved, FoundRun(_key(resolved), name, resolved))
    return list(runs.values())


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the folders with a log at or below ``folder``, down to ``depth`` levels, without hidden folders."""
    if log_path(folder).is_file():
        yield folder
    if depth:
        try:
            subfolders = sorted(
                subfolder for subfolder in folder.iterdir() if subfolder.is_dir() and not subfolder.name.startswith(".")
            )
        except OSError:
            return
        for subfolder in subfolders:
            yield from _below(subfolder, depth - 1)


def _key(folder: Path) -> str:
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).strip("-.")[:40] or "run"
    return f"{readable}-{hashlib.sha256(str(folder).encode(errors='surrogateescape')).hexdigest()[:6]}"


def position(folder: Path) -> Position:
    """Return the present position of a run's log, its write-ahead file included."""
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
    """Cache of heads of runs; a head is read again if its log has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Position, RunHead]] = {}

    def of(self, run: FoundRun) -> RunHead:
        """Return the present head of a run."""
        present = position(run.folder)
        cached = self._known.get(run.folder)
        if cached is not None and cached[0] == present and cached[1].state != "being written":
            return cached[1]
        head = read_head(run)
        self._known[run.folder] = present, head
        return head


def read_head(run: FoundRun) -> RunHead:
    """Read the head of a run; its state is ``unreadable`` if the log cannot be read."""
    try:
        return _read(run)
    except LogError as error:
        return RunHead(run, "unreadable", fault=str(error))


def _read(run: FoundRun) -> RunHead:
    """Read the head of a run. Raises LogError if the log cannot be read."""
    with LogReader(run.folder) as log:
        started = next((r for r in log.records("run_started") if r.kind == "run_started"), None)
        if started is None:
            return RunHead(run, "empty", fault="The log holds no run yet.")
        last_status = None
        for record in log.records("run_resumed", "run_ended"):
            last_status = record
        families = Counter(_families(row.body for row in log.rows("question")))
        questions = sum(families.values())
        asked = {cell: min(count, questions) for cell, count in log.counts("asked").items()}
        records = log.last_seq()
    ended = last_status if last_status is not None and last_status.kind == "run_ended" else None
    state: State = (
        ended.reason if ended else "being written" if _is_being_written(run.folder) is not False else "stopped"
    )
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


def _is_being_written(folder: Path) -> bool | None:
    """Whether a process holds the writer's lock; None if the system cannot tell.

    The lock is looked up and never acquired, since that could make a starting writer fail.
    """
    try:
        inode = (folder / LOCK_NAME).stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None if (folder / LOCK_NAME).exists() else False
    return any(f":{inode} " in line and "FLOCK" in line for line in locks.splitlines())
