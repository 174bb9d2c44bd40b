"""Tests reading a log next to which no file can be created; an unreadable write-ahead log is an error."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from memarena.log.store import LOG_NAME, LogError, LogWriter, read_records

from ..support import golden_run

_BESIDE = shutil.ignore_patterns("*-shm", "*-wal")
"""SQLite's files, which another test that reads the golden log may have made next to it."""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A log whose reader cannot create a file next to it, even as root: a folder has that file's name."""
    run = shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run", ignore=_BESIDE)
    (run / f"{LOG_NAME}-shm").mkdir()
    return run


def test_a_log_without_a_write_ahead_log_is_read(run_dir: Path) -> None:
    assert list(read_records(run_dir)) == golden_run.records()


def test_an_empty_write_ahead_log_is_ignored(run_dir: Path) -> None:
    (run_dir / f"{LOG_NAME}-wal").touch()
    assert len(list(read_records(run_dir, "asked"))) > 100


def test_records_in_a_write_ahead_log_are_read_too(tmp_path: Path) -> None:
    run = shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run", ignore=_BESIDE)
    with LogWriter(run) as log:
        log.append(golden_run.records()[-1])
        killed = shutil.copytree(run, tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    (killed / f"{LOG_NAME}-shm").mkdir()
    assert list(read_records(killed)) == [*golden_run.records(), golden_run.records()[-1]]


def test_an_unreadable_write_ahead_log_is_an_error(run_dir: Path) -> None:
    (run_dir / f"{LOG_NAME}-wal").mkdir()
    with pytest.raises(LogError, match="copy the folder to where it can be written") as error:
        list(read_records(run_dir))
    assert "run.sqlite: cannot be read: " in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_log_is_named(tmp_path: Path) -> None:
    (tmp_path / LOG_NAME).write_text("not a database, but long enough to look at" * 50)
    with pytest.raises(LogError, match="not a run log"):
        list(read_records(tmp_path))
