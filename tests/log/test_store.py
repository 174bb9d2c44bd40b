"""Tests the run log: append-only, a single writer, and refusal of unreadable files."""

from __future__ import annotations

import gc
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena.log.projection import read_projection
from memarena.log.records import (
    RECORD_ADAPTER,
    SCHEMA_VERSION,
    AnyRecord,
    RunEnded,
)
from memarena.log.store import LogError, LogFullError, LogWriter, log_path, read_records

from ..support.golden_run import SMALL_RUN
from ..support.summed import put_body
from .samples import TURN, BreaksOff, asked, call, problem


def test_records_are_read_in_the_order_of_writing(tmp_path: Path) -> None:
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
def test_records_written_before_a_kill_are_kept(messages: list[str]) -> None:
    """A writer killed right after ``append`` has lost no record, and its lock is released."""
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
        messages_read = [r.message for r in read_records(Path(folder)) if r.kind == "problem"]
        assert messages_read == messages
        with LogWriter(Path(folder)) as log:
            log.append(problem("after"))


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with LogWriter(tmp_path), pytest.raises(LogError, match="another process is writing"):
        LogWriter(tmp_path)


@pytest.mark.parametrize("statement", ["UPDATE records SET body = '{}'", "DELETE FROM records"])
def test_written_records_cannot_be_changed(tmp_path: Path, statement: str) -> None:
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


def test_an_unknown_schema_is_refused(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append(problem("one"))
    db = sqlite3.connect(log_path(tmp_path))
    db.execute("UPDATE meta SET value = '0'")
    db.commit()
    db.close()
    with pytest.raises(LogError, match=f"schema_version is 0, expected 1 to {SCHEMA_VERSION}"):
        list(read_records(tmp_path))


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


def test_an_interrupted_write_leaves_a_writable_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between BEGIN and COMMIT: that record is lost, the next one is not."""

    with LogWriter(tmp_path) as log:
        interrupted = BreaksOff(log._db, KeyboardInterrupt)
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(log, "_db", interrupted)
            log.append(problem("lost"))
        log.append(problem("kept"))
    assert [r.message for r in read_records(tmp_path) if r.kind == "problem"] == ["kept"]


def test_signals_at_any_time_lose_no_written_and_no_later_record(tmp_path: Path) -> None:
    """Also right after a commit, and with a second signal while the first is handled."""
    signals_left = 0

    def interrupt(*_: object) -> None:
        nonlocal signals_left
        if signals_left:
            signals_left -= 1
            raise KeyboardInterrupt

    def struck(log: LogWriter, after_s: float, *records: AnyRecord) -> bool:
        """Append under two signals; whether they let it come to its end."""
        nonlocal signals_left
        try:
            try:
                signals_left = 2
                signal.setitimer(signal.ITIMER_REAL, after_s, 4e-5)
                log.append(*records)
                return True
            finally:
                signals_left = 0
        except KeyboardInterrupt:
            signals_left = 0
        return False

    old_handler = signal.signal(signal.SIGALRM, interrupt)
    numbers: list[str] = []
    # What is raised in a callback of the collector (hypothesis has one) goes nowhere.
    gc.disable()
    try:
        with LogWriter(tmp_path) as log:
            began = time.perf_counter()
            for number in range(100):
                log.append(asked(number, f"first {number} {TURN}"), problem(f"first {number}"))
            usual_s = (time.perf_counter() - began) / 100
            for number in range(1500):
                record = asked(number, f"{number} {TURN}")
                # The second signal may come where the first has been handled here.
                with suppress(KeyboardInterrupt):
                    if struck(log, usual_s * (1 + number % 50) / 50, record, problem(f"{number}")):
                        numbers.append(f"{number}")
                log.append(record, problem(f"after {number}"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_handler)
        gc.enable()
    assert len(numbers) < 1400
    messages = [r.message for r in read_records(tmp_path) if r.kind == "problem"]
    assert len(messages) == len(set(messages))
    assert {*numbers, *(f"after {number}" for number in range(1500))} <= set(messages)


def test_a_folder_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no run log"):
        list(read_records(tmp_path))


def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    """A limit on the file's size acts as a full disk: the failed write raises, earlier records stay."""
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
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("refused:"), result.stderr
    assert str(log_path(tmp_path)) in result.stdout
    assert [r.message for r in read_records(tmp_path) if r.kind == "problem"] == ["before"]


def test_a_failed_write_names_the_file(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.close()
    with pytest.raises(LogFullError, match="cannot write to the log"):
        log.append(problem("too late"))


# ------------------------------------------------------------------ bodies that are not those of records


def damage(run_dir: Path, seq: int, body: str | bytes) -> None:
    put_body(log_path(run_dir), seq, body)


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with plain and packed records; a test that damages it has to repair it."""
    run_dir = shutil.copytree(SMALL_RUN, tmp_path_factory.mktemp("odd") / "run")
    with LogWriter(run_dir) as log:
        log.append(asked(1, TURN), call(1, TURN, TURN))
    return run_dir


ODD: list[object] = [None, [], "", 1, {}, {"t": 1}, [{"t": 2}], {"t": "1", "scores": 1}]


def with_one_field_odd(body: str) -> list[str]:
    """The body with each field odd, or missing, and the same within its spans."""
    record = json.loads(body)
    spans = [record, *(record[name] for name in ("search", "answer") if isinstance(record.get(name), dict))]
    bodies = []
    for span in spans:
        for name, value in list(span.items()):
            for odd in (None, [{"t": 2}], {"t": 1}, {"t": "1", "scores": 1}):
                span[name] = odd
                bodies.append(json.dumps(record))
            del span[name]
            bodies.append(json.dumps(record))
            span[name] = value
    return bodies


def test_an_invalid_body_gives_one_line(every_kind: Path) -> None:
    """Both readers report it: the reader for scoring parses records itself, without prior validation."""
    with closing(sqlite3.connect(log_path(every_kind))) as db:
        rows = db.execute("SELECT max(seq), kind, body FROM records GROUP BY kind").fetchall()
    assert {kind for _, kind, _ in rows} >= {"run_started", "question", "asked", "gateway_call", "floor", "ingest"}
    for seq, kind, body in rows:
        bad: list[str | bytes] = [b"{}", "{", *map(json.dumps, ODD)]
        odd = with_one_field_odd(body) if kind in ("asked", "gateway_call") else []
        for content in (*bad, *odd):
            damage(every_kind, seq, content)
            for reader in (read_projection(every_kind, kind, wants_raw=lambda _: True), read_records(every_kind, kind)):
                try:
                    list(reader)
                except LogError as error:
                    assert f"run.sqlite: record {seq} does not parse: " in str(error)
                else:
                    assert content in odd, (kind, content)
        damage(every_kind, seq, body)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("asked", "null", "asked: Input should be an object"),
        ("asked", "{}", "asked.cell_id: Field required"),
        ("gateway_call", "null", "gateway_call: Input should be an object"),
        ("gateway_call", "{}", "gateway_call.call_id: Field required"),
        ("ingest", '{"kind":"ingest"}', "ingest.cell_id: Field required"),
    ],
)
def test_the_fault_of_a_body_is_named(tmp_path: Path, kind: str, body: str, message: str) -> None:
    run_dir = shutil.copytree(SMALL_RUN, tmp_path / "run")
    with LogWriter(run_dir) as log:
        log.append(call(1, TURN))
    with closing(sqlite3.connect(log_path(run_dir))) as db:
        [seq] = db.execute("SELECT max(seq) FROM records WHERE kind = ?", (kind,)).fetchone()
    damage(run_dir, seq, body)
    with pytest.raises(LogError, match=re.escape(f"record {seq} does not parse: {message}")):
        list(read_projection(run_dir, wants_raw=lambda _: False))


@pytest.mark.parametrize("content", [b"", b"not a database"])
def test_a_writer_refuses_a_file_that_is_no_log_and_does_not_change_it(tmp_path: Path, content: bytes) -> None:
    log_path(tmp_path).write_bytes(content)
    with pytest.raises(LogError, match=r"run\.sqlite: not a run log"):
        LogWriter.of_run(tmp_path)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("run.sqlite", content)]
