"""The run log only ever grows, has one writer, and refuses what it cannot read."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena.log.records import RECORD_ADAPTER, SCHEMA_VERSION, Problem, RunEnded
from memarena.log.store import LogError, LogFullError, LogWriter, log_path, read_records


def problem(message: str) -> Problem:
    return Problem(at="2026-01-01T00:00:00+00:00", where="a test", cause="infra", message=message)


def test_records_come_back_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append(problem("one"), problem("two"))
        log.append(RunEnded(ended_at="2026-01-01T00:00:00+00:00", reason="completed"))
    with LogWriter(tmp_path) as log:
        log.append(problem("three"))
    assert [r.message for r in read_records(tmp_path, "problem") if r.kind == "problem"] == ["one", "two", "three"]
    assert [r.kind for r in read_records(tmp_path)] == ["problem", "problem", "run_ended", "problem"]


@given(st.text())
def test_any_text_survives_a_round_trip(text: str) -> None:
    """Also lone surrogates are refused when the record is made, never when it is read."""
    record = problem(text)
    assert RECORD_ADAPTER.validate_json(record.model_dump_json()) == record


@settings(max_examples=5)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_what_was_written_before_a_kill_is_there_afterwards(messages: list[str]) -> None:
    """A writer that is killed right after ``append`` has lost nothing, and its lock does not outlive it."""
    import tempfile

    code = (
        "import os, sys, json, pathlib\n"
        "from memarena.log.records import Problem\n"
        "from memarena.log.store import LogWriter\n"
        "log = LogWriter(pathlib.Path(sys.argv[1]))\n"
        "for m in json.loads(sys.argv[2]):\n"
        "    log.append(Problem(at='x', where='y', cause='infra', message=m))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    import json

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", code, folder, json.dumps(messages)], check=False)
        found = [r.message for r in read_records(Path(folder)) if r.kind == "problem"]
        assert found == messages
        with LogWriter(Path(folder)) as log:
            log.append(problem("after"))


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with LogWriter(tmp_path), pytest.raises(LogError, match="another process is writing"):
        LogWriter(tmp_path)


@pytest.mark.parametrize("statement", ["UPDATE records SET body = '{}'", "DELETE FROM records"])
def test_nothing_written_can_be_changed(tmp_path: Path, statement: str) -> None:
    with LogWriter(tmp_path) as log:
        log.append(problem("keep me"))
    db = sqlite3.connect(log_path(tmp_path))
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)
    db.close()


def test_a_newer_schema_is_refused_by_readers_and_writers(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append(problem("one"))
    db = sqlite3.connect(log_path(tmp_path))
    db.execute("UPDATE meta SET value = ?", (str(SCHEMA_VERSION + 1),))
    db.commit()
    db.close()
    with pytest.raises(LogError, match=f"schema_version is {SCHEMA_VERSION + 1}"):
        list(read_records(tmp_path))
    with pytest.raises(LogError, match="update memarena"):
        LogWriter(tmp_path)


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be one" * 20, b"\0" * 8192])
def test_a_file_that_is_no_log_is_named(tmp_path: Path, content: bytes) -> None:
    log_path(tmp_path).write_bytes(content)
    with pytest.raises(LogError, match="not a run log"):
        list(read_records(tmp_path))


@pytest.mark.parametrize("name", ["a#b", "50%41", "why?mode=rw"])
def test_a_folder_of_any_name_holds_a_log(tmp_path: Path, name: str) -> None:
    with LogWriter(tmp_path / name) as log:
        log.append(problem("one"))
    with LogWriter(tmp_path / name) as log:
        log.append(problem("two"))
    assert len(list(read_records(tmp_path / name))) == 2
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append(*(problem("x" * 1000) for _ in range(200)))
    path = log_path(tmp_path)
    content = bytearray(path.read_bytes())
    content[60_000:180_000] = b"\xff" * 120_000
    path.write_bytes(content)
    with pytest.raises(LogError, match=re.escape(str(path))):
        list(read_records(tmp_path))


def test_an_interrupted_write_leaves_a_log_that_can_be_written(tmp_path: Path) -> None:
    """Ctrl-C between BEGIN and COMMIT: that record is lost, the next one is not."""

    class Interrupted:
        def __init__(self, db: sqlite3.Connection) -> None:
            self.db = db

        def __getattr__(self, name: str) -> object:
            return getattr(self.db, name)

        def executemany(self, *_: object) -> None:
            raise KeyboardInterrupt

    with LogWriter(tmp_path) as log:
        db = log._db
        log._db = Interrupted(db)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            log.append(problem("lost"))
        log._db = db
        log.append(problem("kept"))
    assert [r.message for r in read_records(tmp_path) if r.kind == "problem"] == ["kept"]


def test_a_folder_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no run log"):
        list(read_records(tmp_path))


def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    """The limit on the file's size stands in for a full disk: the failed write raises, earlier records stay."""
    code = (
        "import resource, sys, pathlib\n"
        "from memarena.log.records import Problem\n"
        "from memarena.log.store import LogFullError, LogWriter\n"
        "log = LogWriter(pathlib.Path(sys.argv[1]))\n"
        "log.append(Problem(at='x', where='y', cause='infra', message='before'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "try:\n"
        "    log.append(Problem(at='x', where='y', cause='infra', message='z' * 1_000_000))\n"
        "except LogFullError as error:\n"
        "    print('refused:', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused:"), done.stderr
    assert str(log_path(tmp_path)) in done.stdout
    assert [r.message for r in read_records(tmp_path) if r.kind == "problem"] == ["before"]


def test_a_failed_write_names_the_file(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.close()
    with pytest.raises(LogFullError, match="cannot write to the log"):
        log.append(problem("too late"))
