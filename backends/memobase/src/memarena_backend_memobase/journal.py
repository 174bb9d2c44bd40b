"""What a namespace holds on the Memobase server, as of its last committed day and of the day that is being taken in.

The server keeps no days and cannot take one back. So before a day begins, what it held until then stands in this
journal, and after it what it holds now. Which of the two counts is decided by the kit's day store, whose transaction
commits the day: after a restart, a journal of a committed day is carried forward, one of any other is undone.
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
    """An entry of the profile. ``sessions``: those that it was made or changed by; ``time``: of the last of them."""

    content: str
    attributes: dict[str, JsonValue]
    sessions: tuple[str, ...]
    time: str


class KeptEvent(_Record):
    """An event: its lines, the sessions that it logs, and when the last of them began (RFC 3339)."""

    lines: tuple[str, ...]
    sessions: tuple[str, ...]
    time: str


class Tally(_Record):
    """Sessions of a namespace so far: given to the extractor, and of those the ones that went less than well."""

    sessions: int = 0
    empty: int = 0
    """Made neither an event nor a profile entry."""
    lineless: int = 0
    """Made an event whose log holds no line that the server keeps for search: prose in the place of a list."""
    unchanged: int = 0
    """Made an event, but neither made nor changed an entry of the profile."""
    failed: int = 0
    """Lost with a flush that failed."""

    def plus(self, other: Tally) -> Tally:
        """The sum."""
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in Tally.model_fields})


class Holding(_Record):
    """What the server holds for a namespace after a day; ids of slots and events are the server's."""

    day: int
    slots: dict[str, KeptSlot] = {}
    events: dict[str, KeptEvent] = {}
    tally: Tally = Tally()


class Journal(_Record):
    """The journal of one namespace. ``began_s``: Unix time at which the pending day began."""

    user: str
    committed: Holding | None = None
    pending_day: int | None = None
    began_s: float = 0.0
    after: Holding | None = None


def user_of(namespace: str, generation: int) -> str:
    """Id of the Memobase user that keeps a namespace: the same wherever it is computed.

    A namespace that was forgotten goes on with the next generation, so that what the server might still be extracting
    for the old user never shows in the new one.
    """
    return str(uuid.uuid5(_USERS, f"{generation}/{namespace}"))


class Journals:
    """The journals in a folder, one file each. Writing is atomic and durable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, namespace: str) -> Journal | None:
        """The journal, None if there is none. Raises CallError FAILED_PRECONDITION for a file that is none."""
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
        """How often the namespace was given up before."""
        try:
            return int(self._path(namespace, "generation").read_bytes())
        except FileNotFoundError:
            return 0

    def give_up(self, namespace: str) -> None:
        """Forget the journal; the next one is of the next generation."""
        _replace(self._path(namespace, "generation"), str(self.generation(namespace) + 1).encode())
        self._path(namespace, "json").unlink(missing_ok=True)

    def _path(self, namespace: str, kind: str) -> Path:
        return self._folder / f"{hashlib.sha256(namespace.encode()).hexdigest()[:32]}.{kind}"


def joined(*sessions: Iterable[str]) -> tuple[str, ...]:
    """Ids in the order of their first appearance, each once."""
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
