"""Tests the kit's folder for each day: files of a failed, killed or uncommitted day are never part of the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_backend import DayFolders


def _committed(folders: DayFolders, namespace: str, day: int, name: str) -> Path:
    folder = folders.begin(namespace, day)
    (folder / name).write_text(name)
    folders.keep(namespace, day)
    return folder


def _names(folder: Path | None) -> set[str]:
    assert folder is not None
    return {path.name for path in folder.iterdir()}


def test_a_day_changes_a_copy_of_the_day_before(tmp_path: Path) -> None:
    folders = DayFolders(tmp_path)
    first = _committed(folders, "ns", 3, "a")
    second = _committed(folders, "ns", 7, "b")
    assert _names(first) == {"a"}
    assert _names(second) == {"a", "b"}


def test_an_unfinished_day_is_never_restored(tmp_path: Path) -> None:
    _committed(DayFolders(tmp_path), "ns", 0, "a")
    after_restart = DayFolders(tmp_path)
    assert after_restart.restore("ns", 0) is not None
    (after_restart.begin("ns", 1) / "half").touch()
    killed = DayFolders(tmp_path)
    assert _names(killed.restore("ns", 0)) == {"a"}
    assert killed.restore("ns", 1) is None, "half a day is no state"


def test_a_stored_day_that_was_not_committed_is_undone(tmp_path: Path) -> None:
    folders = DayFolders(tmp_path)
    _committed(folders, "ns", 0, "a")
    _committed(folders, "ns", 1, "b")
    folders.unload("ns")
    assert _names(folders.restore("ns", 0)) == {"a"}
    assert _names(folders.begin("ns", 1)) == {"a"}


def test_a_first_day_that_was_not_committed_starts_empty(tmp_path: Path) -> None:
    folders = DayFolders(tmp_path)
    _committed(folders, "ns", 0, "a")
    folders.unload("ns")  # nothing is committed, so nothing is restored
    assert _names(folders.begin("ns", 0)) == set()


def test_at_most_two_folders_of_a_namespace_are_on_disk(tmp_path: Path) -> None:
    folders = DayFolders(tmp_path)
    for day in range(4):
        _committed(folders, "ns", day, str(day))
    (folder,) = tmp_path.iterdir()
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"2", "3"}


@pytest.mark.parametrize("other", ["ns1", "n", "../ns", "ns/", "NS"])
def test_namespaces_do_not_share_folders(tmp_path: Path, other: str) -> None:
    folders = DayFolders(tmp_path)
    _committed(folders, "ns", 0, "a")
    _committed(folders, other, 0, "b")
    folders.forget(other)
    assert folders.restore(other, 0) is None
    assert _names(folders.restore("ns", 0)) == {"a"}
    assert len(list(tmp_path.iterdir())) == 1, "nothing stays of a namespace that was forgotten"
