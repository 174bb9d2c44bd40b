"""Makes days atomic for memories whose library keeps its own files: one folder per namespace and committed day.

A library's database seldom has transactions that span a day. So each day changes a copy of the previous day's folder,
and the copy counts once the day is committed: a day that failed or was killed leaves no trace, and no earlier day
has to be extracted again. Disk: at most two copies of a namespace.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_KEPT = ".kept"
"""Suffix of the marker file that declares the folder of a day complete and synced to disk."""


class DayFolders:
    """Manages the folders below ``root``; namespaces may be any text. Methods raise OSError if the disk fails.

    Calls for one namespace must not overlap, as the kit calls ``commit_day``, ``restore``, ``unload`` and ``forget``. A
    library must have closed its files in a folder before :meth:`begin` copies it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._days: dict[str, int] = {}
        """By namespace, the day whose folder holds its state; a namespace is missing until kept or restored here."""
        root.mkdir(parents=True, exist_ok=True)

    def begin(self, namespace: str, day: int) -> Path:
        """Return the folder for ``day`` to write to: a copy of the last day's folder, or an empty one.

        Folders of all other days are removed first.
        """
        own_folder = self._folder(namespace)
        committed = self._days.get(namespace)
        assert committed is None or committed < day, f"day {day} follows day {committed}"
        self._drop_all_but(own_folder, committed)
        folder = own_folder / str(day)
        if committed is None:
            folder.mkdir(parents=True)
        else:
            shutil.copytree(own_folder / str(committed), folder)
        return folder

    def keep(self, namespace: str, day: int) -> None:
        """Declare the folder of ``day`` complete: sync it to disk and make it the namespace's state.

        The previous day's folder stays until the next :meth:`begin`, in case the day is not committed after all.
        """
        folder = self._folder(namespace)
        for path in (*_below(folder / str(day)), folder):
            _sync(path)
        (folder / f"{day}{_KEPT}").touch()
        _sync(folder)
        self._days[namespace] = day

    def restore(self, namespace: str, day: int) -> Path | None:
        """Return the folder of the last committed day and remove all others; None if it is missing or incomplete."""
        own_folder = self._folder(namespace)
        folder = own_folder / str(day)
        is_complete = folder.is_dir() and (own_folder / f"{day}{_KEPT}").is_file()
        self._drop_all_but(own_folder, day if is_complete else None)
        if not is_complete:
            self._days.pop(namespace, None)
            return None
        self._days[namespace] = day
        return folder

    def unload(self, namespace: str) -> None:
        """Forget which day holds the state, but remove no folder. Call it from the memory's own ``unload``."""
        self._days.pop(namespace, None)

    def forget(self, namespace: str) -> None:
        """Remove all folders of a namespace; does nothing if there are none."""
        self._days.pop(namespace, None)
        self._drop_all_but(self._folder(namespace), None)

    def _folder(self, namespace: str) -> Path:
        return self._root / hashlib.sha256(namespace.encode()).hexdigest()[:32]

    def _drop_all_but(self, folder: Path, day: int | None) -> None:
        if not folder.is_dir():
            return
        stays = set() if day is None else {str(day), f"{day}{_KEPT}"}
        removed = [path for path in folder.iterdir() if path.name not in stays]
        # Marker files first: a folder that is half removed must not count as complete.
        for path in sorted(removed, key=lambda path: path.is_dir()):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        if not stays:
            folder.rmdir()


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files and folders below a folder, without symbolic links, then the folder itself."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            yield path
    yield folder


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
