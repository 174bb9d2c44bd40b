"""Locks a node for a single certification; the kernel releases the lock if its holder dies, and a note names it.

Two runs, or a run and an audit, on a node at the same time would disturb each other's times.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from memarena.log.base import Record
from memarena_dataset.safe_files import acquire_lock
from pydantic import ValidationError

from memarena_spark.errors import RefusedError, SparkError
from memarena_spark.refusal_codes import refusal

VARIABLE = "MEMARENA_SPARK_LOCK"
_NAME = "memarena-spark.lock"


class Holder(Record):
    """The process that holds the lock, or held it last."""

    pid: int
    boot_id: str
    since: str
    out: str


def lock_path() -> Path:
    """Return the path of the lock: MEMARENA_SPARK_LOCK, else in /run/lock, else in the folder for temporary files."""
    if variable := os.environ.get(VARIABLE):
        return Path(variable)
    system_folder = Path("/run/lock")
    return (system_folder if os.access(system_folder, os.W_OK) else Path(tempfile.gettempdir())) / _NAME


@contextlib.contextmanager
def node_lock(path: Path, boot_id: str, out: Path) -> Iterator[Holder | None]:
    """Hold the node's lock; yield the note of a holder that died without releasing it, None if it was released.

    The note does not lock: after a kill or a power cut it stays, and the next run
    reports it. Raises :class:`~memarena_spark.errors.RefusedError` (``locked``) while another process holds the lock,
    and :class:`~memarena_spark.errors.SparkError` if the file cannot be used.
    """
    descriptor = _locked(path)
    try:
        left_by = _note_in(path)
        _write(
            descriptor,
            Holder(pid=os.getpid(), boot_id=boot_id, since=now(), out=str(out)).model_dump_json().encode() + b"\n",
        )
        try:
            yield left_by
        finally:
            _write(descriptor, b"")
    finally:
        os.close(descriptor)


def check_lock(path: Path) -> None:
    """Acquire the lock and release it at once. Raises as :func:`node_lock` does."""
    os.close(_locked(path))


def _locked(path: Path) -> int:
    """Lock the file; return the descriptor that holds the lock."""
    try:
        return acquire_lock(path)
    except BlockingIOError as error:
        raise RefusedError("lock", [refusal("locked", _who(_note_in(path), path))]) from error
    except PermissionError as error:
        raise SparkError(
            f"lock {path}: {_forbidden(path)}; remove it, or set {VARIABLE} to a path of your own"
        ) from error
    except OSError as error:
        raise SparkError(f"lock {path}: {error.strerror}") from error


def _forbidden(path: Path) -> str:
    existing = path if os.path.lexists(path) else path.parent
    try:
        owner = f"belongs to user {existing.stat().st_uid}"
    except OSError as error:
        owner = str(error.strerror)
    return f"user {os.getuid()} may not write it, {existing} {owner}"


def left_note(left_by: Holder) -> str:
    """Return the message about a holder that died without releasing the lock."""
    return f"an earlier run ({left_by.out}, process {left_by.pid}) did not end in order; its lock is void"


def _note_in(path: Path) -> Holder | None:
    try:
        return Holder.model_validate_json(path.read_bytes()[:4096])
    except (OSError, ValidationError):
        return None


def _write(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)
    os.fsync(descriptor)


def _who(holder: Holder | None, path: Path) -> str:
    if holder is None:
        return f"another process holds {path}"
    return f"process {holder.pid} has run into {holder.out} since {holder.since} ({path})"


def now() -> str:
    """Return the current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
