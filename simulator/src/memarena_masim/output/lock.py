"""Locks an output folder, so that only one process writes it at a time."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memarena_dataset.safe_files import acquire_lock

from memarena_masim.errors import MasimError

_CANNOT_LOCK = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)
"""Error numbers of file systems that cannot lock folders, such as some network file systems."""


@contextmanager
def only_writer(out: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Make the folder ``out`` if there is none, and hold it until this process ends or is killed.

    The folder itself is locked, so that no file is left in a data set. Where the file system cannot do that, a line of
    progress says so.

    Raises:
        MasimError: ``out`` is not a folder, or another process holds it.
        OSError: it cannot be made or opened.
    """
    if out.exists() and not out.is_dir():
        raise MasimError(f"--out {out}: not a folder; an empty or new folder is expected")
    out.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(out, progress)  # no child inherits it: the lock ends with this process, however it ends
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(out: Path, progress: Callable[[str], None]) -> int | None:
    try:
        return acquire_lock(out)
    except BlockingIOError as error:
        raise MasimError(f"--out {out}: another process is making a data set there") from error
    except OSError as error:
        if error.errno not in _CANNOT_LOCK:
            raise
        progress(f"{out}: cannot be locked ({error.strerror}); nothing else may write there meanwhile")
        return None
