"""Tests locks (one holder at a time, content untouched) and atomic writes of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from memarena_dataset.safe_files import acquire_lock, replacing, write_whole


@pytest.mark.parametrize("kind", ["new file", "file with a note", "folder"])
def test_a_lock_has_one_holder_until_every_copy_of_its_descriptor_is_closed(kind: str, tmp_path: Path) -> None:
    path = tmp_path if kind == "folder" else tmp_path / "lock"
    if kind == "file with a note":
        path.write_text("process 7")
    descriptor = acquire_lock(path)
    copy = os.dup(descriptor)
    os.close(descriptor)
    with pytest.raises(BlockingIOError):
        acquire_lock(path)
    os.close(copy)
    os.close(acquire_lock(path))
    assert kind != "file with a note" or path.read_text() == "process 7"


def test_a_file_that_cannot_be_locked_raises_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        acquire_lock(tmp_path / "missing" / "lock")


@pytest.mark.parametrize("content", ["käse\n", "käse\n".encode(), ["kä", "se\n"]])
def test_a_file_is_written_completely(content: str | bytes | list[str], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_whole(path, content, mode=0o600, durable=True)
    assert path.read_bytes() == "käse\n".encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    with pytest.raises(KeyboardInterrupt), replacing(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
