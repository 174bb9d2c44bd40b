"""A folder on disk for each namespace and day, for memories whose library keeps its own files.

A library's database seldom has a transaction that spans a day. So each day changes a copy of the folder of the day
before, and the copy counts once the day is committed: a day that failed or was killed leaves nothing, and nothing has
to be extracted twice. Disk: at most two copies of a namespace.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_KEPT = ".kept"
"""Ends the name of the file that marks the folder of its day as whole and on disk."""


class DayFolders:
    """Folders below ``root``; namespaces may be any text. Raises OSError where the disk refuses.

    Calls for one namespace must not overlap, as the kit calls ``commit_day``, ``restore``, ``unload`` and ``forget``. A
    library must have closed its files in a folder before :meth:`begin` copies it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._days: dict[str, int] = {}
        """The day whose folder is the state of a namespace, once known in this process."""
        root.mkdir(parents=True, exist_ok=True)

    def begin(self, namespace: str, day: int) -> Path:
        """The folder that ``day`` is to change: a copy of the held day's, empty if none is held.

        What other days left is removed.
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
        """The folder of ``day`` is whole: bring it to disk, and hold it from now on.

        The folder before it stays until the next :meth:`begin`, in case that the day is not committed after all.
        """
        folder = self._folder(namespace)
        for path in (*_below(folder / str(day)), folder):
            _sync(path)
        (folder / f"{day}{_KEPT}").touch()
        _sync(folder)
        self._days[namespace] = day

    def restore(self, namespace: str, day: int) -> Path | None:
        """The folder of the last committed day, and no other any more; None if it is not there as it was kept."""
        own_folder = self._folder(namespace)
        folder = own_folder / str(day)
        whole = folder.is_dir() and (own_folder / f"{day}{_KEPT}").is_file()
        self._drop_all_but(own_folder, day if whole else None)
        if not whole:
            self._days.pop(namespace, None)
            return None
        self._days[namespace] = day
        return folder

    def unload(self, namespace: str) -> None:
        """Hold no day any more, from the memory's own ``unload``; :meth:`restore` follows where a day is committed."""
        self._days.pop(namespace, None)

    def forget(self, namespace: str) -> None:
        """Remove everything of a namespace; one that was never seen is fine."""
        self._days.pop(namespace, None)
        self._drop_all_but(self._folder(namespace), None)

    def _folder(self, namespace: str) -> Path:
        return self._root / hashlib.sha256(namespace.encode()).hexdigest()[:32]

    def _drop_all_but(self, folder: Path, day: int | None) -> None:
        if not folder.is_dir():
            return
        stays = set() if day is None else {str(day), f"{day}{_KEPT}"}
        gone = [path for path in folder.iterdir() if path.name not in stays]
        # Marks first: a folder that is half removed must not count as whole.
        for path in sorted(gone, key=lambda path: path.is_dir()):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        if not stays:
            folder.rmdir()


def _below(folder: Path) -> Iterator[Path]:
    """The files and folders of a folder, itself last."""
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
