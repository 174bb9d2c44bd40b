"""Locks files, writes them atomically, and hashes a file or a pack.

The library filelock does not fit: a lock's file holds a note or a position, which filelock empties, and a child process
has to hold the lock by its descriptor after its parent has died.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def acquire_lock(path: Path) -> int:
    """Lock a folder or a file, which is created if it is missing (flock(2)). Return the descriptor that holds the lock.

    The lock ends when the descriptor and each copy of it in a child process are closed, also by a crash. Raises
    BlockingIOError if another process holds it, and OSError if the path cannot be opened or the file system has no
    locks.
    """
    # Without O_CREAT if it exists: kernels refuse that flag for another user's file in a shared folder.
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | (0 if path.exists() else os.O_CREAT)
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces ``path`` after the block; an error removes it."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | bytes | Iterable[str], *, mode: int = 0o666, durable: bool = False) -> None:
    """Write a file atomically: a reader sees the old content or all of the new. Text is UTF-8, lines end in LF.

    ``durable``: also after a power cut. ``mode``: permissions of a new file, less the process's umask.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    with replacing(path) as part:
        part.touch(mode)
        with part.open("wb") as file:
            file.writelines(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pack_hash(hashes: Mapping[str, str]) -> str:
    """Return the SHA-256 of the lines ``<SHA-256>  <path>``, as ``sha256sum`` prints them, sorted by path.

    ``hashes``: SHA-256 of each file, in hexadecimal, by path.
    """
    lines = "".join(f"{hashes[path]}  {path}\n" for path in sorted(hashes))
    return hashlib.sha256(lines.encode()).hexdigest()
