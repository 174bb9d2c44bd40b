"""Announces runs of a node in a file before they begin, so that no result can be chosen from many.

A node has a single file of announcements, one per line. Every line holds the SHA-256 of the line before, so anyone who
has seen the last line can detect that an earlier line was changed or removed. A second party confirms that it has seen
it: :mod:`.bundle.receipts`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from memarena.log.base import Record
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.safe_files import acquire_lock
from pydantic import Field, TypeAdapter, ValidationError

from memarena_spark.errors import FileError, SparkError
from memarena_spark.files import sha256
from memarena_spark.locking import now
from memarena_spark.plans import LoadedPlan

VARIABLE = "MEMARENA_SPARK_ANNOUNCEMENTS"
NAME = "announcements.jsonl"
_FIRST = "0" * 64
"""``previous_sha256`` of the first line."""


class Announced(Record):
    """The line that announces a run, before it begins."""

    kind: Literal["announced"] = "announced"
    number: int
    """Number of the announcement, from 1, over all announcements of the node."""
    at: str
    previous_sha256: str
    node: str
    plan_sha256: str
    """SHA-256 of the plan's text and its profile's text together: :func:`plan_sha256`."""
    dataset_sha256: str
    nonce: str
    """A value that a second party made just before, which proves that the announcement is not older; empty: none."""


class Started(Record):
    """The line that the run of an announcement begins: the checks of the node passed, no question was asked yet."""

    kind: Literal["started"] = "started"
    number: int
    at: str
    previous_sha256: str


class Ended(Record):
    """The line that the run of an announcement is over. A run that was killed has no such line."""

    kind: Literal["ended"] = "ended"
    number: int
    at: str
    previous_sha256: str
    outcome: Literal["completed", "incomplete", "interrupted", "aborted"]
    started_at: str
    """Start of the run as its record states it, by which a bundle's run is matched with its announcement."""


class Committed(Record):
    """The line that a commitment to a fresh world was made: :mod:`.fresh.commitment`."""

    kind: Literal["committed"] = "committed"
    at: str
    previous_sha256: str
    node: str
    commitment_sha256: str


Entry = Announced | Started | Ended | Committed
_ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


@dataclass(frozen=True)
class Attempt:
    """An announcement, and the start and end of its run. None: not started, or not ended."""

    announced: Announced
    started: Started | None = None
    ended: Ended | None = None

    @property
    def state(self) -> str:
        """``open`` (not started), ``not ended``, or the outcome."""
        if self.ended is not None:
            return self.ended.outcome
        return "not ended" if self.started is not None else "open"


@dataclass(frozen=True)
class Announcements:
    """The announcements of a node, in order. ``lines``: without newline; ``attempts``: by number."""

    lines: tuple[bytes, ...]
    attempts: Mapping[int, Attempt]
    commitments: Mapping[str, int]
    """Line index of each commitment to a fresh world, by the commitment's SHA-256, in order."""
    node: str
    """Name of the node in the first announcement or commitment; empty if there is none."""

    @property
    def head_sha256(self) -> str:
        """SHA-256 of the last line."""
        return self.head_after(len(self.lines))

    def head_after(self, count: int) -> str:
        """Return the SHA-256 of the last of the first ``count`` lines; 64 zeros for 0."""
        return sha256(self.lines[count - 1]) if count else _FIRST

    def of(self, plan: str, dataset: str) -> list[Attempt]:
        """Return the attempts at a plan on a data set (their SHA-256) in the order of their numbers."""
        key = (plan, dataset)
        attempts = [self.attempts[number] for number in sorted(self.attempts)]
        return [a for a in attempts if (a.announced.plan_sha256, a.announced.dataset_sha256) == key]


def announcements_path() -> Path:
    """Return the path of the node's file: MEMARENA_SPARK_ANNOUNCEMENTS, else in the user's state folder (XDG).

    Raises SparkError if there is neither.
    """
    if variable := os.environ.get(VARIABLE):
        return Path(variable)
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError as error:
        raise SparkError(f"{VARIABLE}: must be set, since there is no home folder") from error
    return state / "memarena" / NAME


def plan_sha256(plan_text: str, profile_text: str) -> str:
    """Return the SHA-256 of plan and profile together, by which an announcement identifies its plan."""
    return sha256(f"{plan_text}\0{profile_text}".encode())


def parse(content: bytes, source: str) -> Announcements:
    """Parse the content of a file of announcements. Raises FileError naming the first line at fault."""
    lines = tuple(content.split(b"\n")[:-1])
    attempts: dict[int, Attempt] = {}
    commitments: dict[str, int] = {}
    node = ""
    previous_sha256 = _FIRST
    if content and not content.endswith(b"\n"):
        raise FileError(source, f"line {len(lines) + 1}: is cut short")
    for number, line in enumerate(lines, 1):
        try:
            entry = _ENTRY.validate_json(line)
        except ValidationError as error:
            raise FileError(source, f"line {number}: {' '.join(str(error).split())[:200]}") from error
        if entry.model_dump_json().encode() != line:
            raise FileError(source, f"line {number}: not as this program writes it")
        if entry.previous_sha256 != previous_sha256:
            raise FileError(source, f"line {number}: does not follow from the line before: one was changed or left out")
        for fault in _faults(entry, attempts):
            raise FileError(source, f"line {number}: {fault}")
        if isinstance(entry, Committed):
            commitments.setdefault(entry.commitment_sha256, number - 1)
        if isinstance(entry, Announced | Committed):
            node = node or entry.node
        previous_sha256 = sha256(line)
    return Announcements(lines, attempts, commitments, node)


def _faults(entry: Entry, attempts: dict[int, Attempt]) -> Iterator[str]:
    """Yield the faults of an entry, given the earlier entries, and add it to ``attempts``."""
    if isinstance(entry, Committed):
        return
    attempt = attempts.get(entry.number)
    if isinstance(entry, Announced):
        if entry.number != len(attempts) + 1:
            yield f"expected announcement {len(attempts) + 1}, got {entry.number}"
        attempts[entry.number] = Attempt(entry)
    elif attempt is None:
        yield f"there is no announcement {entry.number}"
    elif isinstance(entry, Started):
        if attempt.started is not None:
            yield f"announcement {entry.number} was started already"
        attempts[entry.number] = Attempt(attempt.announced, entry)
    else:
        if attempt.started is None or attempt.ended is not None:
            yield f"announcement {entry.number} is not under way"
        attempts[entry.number] = Attempt(attempt.announced, attempt.started, entry)


def read(path: Path) -> Announcements:
    """Return the announcements of a file, empty if it does not exist. Raises SparkError."""
    try:
        content = path.read_bytes()
        return parse(content[: _whole(content)], str(path))
    except FileNotFoundError:
        return Announcements((), {}, {}, "")
    except OSError as error:
        raise SparkError(f"{path}: cannot be read: {error.strerror}") from error


def announce(path: Path, plan: LoadedPlan, node: str, nonce: str) -> Announced:
    """Announce a run of a plan. Raises SparkError."""
    with _locked(path) as announcements:
        entry = Announced(
            number=len(announcements.attempts) + 1,
            at=now(),
            previous_sha256=announcements.head_sha256,
            node=node,
            plan_sha256=plan_sha256(plan.plan_text, plan.profile_text),
            dataset_sha256=_dataset_sha256(plan),
            nonce=nonce,
        )
        _append(path, entry)
    return entry


def announce_commitment(path: Path, node: str, commitment_sha256: str) -> None:
    """Announce a commitment to a fresh world. Raises SparkError."""
    with _locked(path) as announcements:
        head = announcements.head_sha256
        _append(path, Committed(at=now(), previous_sha256=head, node=node, commitment_sha256=commitment_sha256))


def open_announcement(path: Path, loaded: LoadedPlan) -> Announced:
    """Return the first announcement of a plan that was not started. Raises SparkError if there is none."""
    plan_sha = plan_sha256(loaded.plan_text, loaded.profile_text)
    for attempt in read(path).of(plan_sha, _dataset_sha256(loaded)):
        if attempt.started is None:
            return attempt.announced
    raise SparkError(f"--announced: {path} has no announcement of this plan and data set that was not started")


def start(path: Path, announcement: Announced) -> None:
    """Record that the run of an announcement begins. Raises SparkError."""
    with _locked(path) as announcements:
        _append(path, Started(number=announcement.number, at=now(), previous_sha256=announcements.head_sha256))


def end(
    path: Path,
    announcement: Announced,
    outcome: Literal["completed", "incomplete", "interrupted", "aborted"],
    started_at: str,
) -> None:
    """Record the end of an announcement's run; ``started_at`` is that of the run's record. Raises SparkError."""
    with _locked(path) as announcements:
        head = announcements.head_sha256
        entry = Ended(
            number=announcement.number, at=now(), previous_sha256=head, outcome=outcome, started_at=started_at
        )
        _append(path, entry)


def _dataset_sha256(plan: LoadedPlan) -> str:
    with open_dataset(plan.plan.run.dataset) as dataset:
        return dataset.sha256


@contextmanager
def _locked(path: Path) -> Iterator[Announcements]:
    """Lock the file of announcements for the block and yield its content."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = acquire_lock(path)
    except BlockingIOError as error:
        raise SparkError(f"{path}: another process writes to it") from error
    except OSError as error:
        raise SparkError(f"{path}: cannot be written to: {error.strerror}") from error
    try:
        yield read(path)
    finally:
        os.close(lock)


def _append(path: Path, entry: Entry) -> None:
    try:
        with path.open("r+b") as file:
            # An incomplete last line is the trace of a power cut: no caller was told that it is written.
            file.truncate(_whole(file.read()))
            file.seek(0, os.SEEK_END)
            file.write(entry.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise SparkError(f"{path}: cannot be written to: {error.strerror}") from error


def _whole(content: bytes) -> int:
    """Return the number of bytes of the complete lines."""
    return content.rfind(b"\n") + 1
