"""Keeps a journal of what each namespace holds on the Memobase server, so that a day can be undone.

The server has no notion of days and cannot roll one back. So the journal records what the server held before a day, and
what it holds after it. The kit's day store, whose transaction commits the day, decides which of the two counts: after a
restart a journal of a committed day moves on to the state after it; any other day is undone.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from memarena_backend import failed_precondition
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

_USERS = uuid.uuid5(uuid.NAMESPACE_URL, "memarena:memobase")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KeptSlot(_Record):
    """An entry of the profile. ``sessions`` are the ids of those that made or changed it; ``time`` is of the last."""

    content: str
    attributes: dict[str, JsonValue]
    sessions: tuple[str, ...]
    time: str


class KeptEvent(_Record):
    """An event: its lines, the ids of the sessions that it logs, and when the last of them began (RFC 3339)."""

    lines: tuple[str, ...]
    sessions: tuple[str, ...]
    time: str


class Tally(_Record):
    """Counts of a namespace's sessions so far."""

    sessions: int = 0
    """Sessions that were sent to the extractor."""
    empty: int = 0
    """Sessions from which neither an event nor a profile entry was extracted."""
    lineless: int = 0
    """Sessions with an event whose log has no line that the server can search: prose instead of a list."""
    unchanged: int = 0
    """Sessions with an event that neither added nor changed a profile entry."""
    failed: int = 0
    """Sessions lost in a flush that failed."""

    def plus(self, other: Tally) -> Tally:
        """Return the sum of both."""
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in Tally.model_fields})


class Holding(_Record):
    """What the server holds for a namespace after a day: profile entries (slots) and events, by the server's ids."""

    day: int
    slots: dict[str, KeptSlot] = {}
    events: dict[str, KeptEvent] = {}
    tally: Tally = Tally()


class Journal(_Record):
    """The journal of one namespace."""

    user: str
    """Id of the namespace's user on the server."""
    committed: Holding | None = None
    """State after the last committed day; None before any day is committed."""
    pending_day: int | None = None
    """Index of the day that has begun since; None if there is none."""
    began_s: float = 0.0
    """Unix time at which the pending day began."""
    after: Holding | None = None
    """State after the pending day; None until it is extracted."""


def user_of(namespace: str, generation: int) -> str:
    """Return the id of the Memobase user that stores a namespace; it depends on the arguments alone.

    After a Reset the namespace gets the next generation, so that results of an extraction still running for the old
    user never appear in the new one.
    """
    return str(uuid.uuid5(_USERS, f"{generation}/{namespace}"))


class Journals:
    """The journals in a folder, one file per namespace. Writes are atomic and durable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, namespace: str) -> Journal | None:
        """Return the journal, None if there is none. Raises CallError FAILED_PRECONDITION for an invalid file."""
        path = self._path(namespace, "json")
        try:
            return Journal.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise failed_precondition(f"{path.name}: is no journal of a namespace; Reset the namespace") from error

    def write(self, namespace: str, journal: Journal) -> None:
        """Replace the journal."""
        _replace(self._path(namespace, "json"), journal.model_dump_json().encode())

    def generation(self, namespace: str) -> int:
        """Return how often :meth:`give_up` was called for the namespace."""
        try:
            return int(self._path(namespace, "generation").read_bytes())
        except FileNotFoundError:
            return 0

    def give_up(self, namespace: str) -> None:
        """Delete the journal, and move the namespace to the next generation."""
        _replace(self._path(namespace, "generation"), str(self.generation(namespace) + 1).encode())
        self._path(namespace, "json").unlink(missing_ok=True)

    def _path(self, namespace: str, kind: str) -> Path:
        return self._folder / f"{hashlib.sha256(namespace.encode()).hexdigest()[:32]}.{kind}"


def joined(*sessions: Iterable[str]) -> tuple[str, ...]:
    """Return all ids of several sequences, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(session_id for ids in sessions for session_id in ids))


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_suffix(path.suffix + ".new")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
