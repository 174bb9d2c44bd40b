"""Tests the texts of a log: stored once, complete, and missing ones are reported; logs of version 1 have none.

*Texts* are pieces of prompts, items and answers, in their own table, to which records refer by number. A run repeats
most of them; if joining them again lost a character, a run could not be scored as it happened.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memarena.log.records import SCHEMA_VERSION, AnyRecord, Notice
from memarena.log.store import LogError, LogFullError, LogWriter, check_schema, log_path, read_records
from memarena.log.texts import join_ids, pieces, split_ids

from .samples import TURN, BreaksOff, asked, call

VERSION_1 = Path(__file__).parents[1] / "golden" / "log_v1"
"""A log as schema version 1 wrote it: every body holds its texts, and there is no table of texts."""


def texts_of(run_dir: Path) -> list[str]:
    """Return the pieces of text in the table of texts, in the order in which they were written."""
    with closing(sqlite3.connect(log_path(run_dir))) as db:
        rows = db.execute("SELECT body FROM texts ORDER BY id").fetchall()
    return [body if isinstance(body, str) else zlib.decompress(body).decode() for (body,) in rows]


LONG = st.text(alphabet=st.sampled_from("aß\n\\n\"'{}é漢 \x00\u2028"), max_size=400)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LONG, max_size=3), LONG, LONG)
def test_records_come_back_whole_whatever_their_texts_are(
    tmp_path_factory: pytest.TempPathFactory, items: list[str], raw: str, prompt: str
) -> None:
    run_dir = tmp_path_factory.mktemp("log")
    records: list[AnyRecord] = [asked(1, *items, raw=raw), call(1, prompt, raw), asked(2, *items, *items, raw=prompt)]
    with LogWriter(run_dir) as log:
        for record in records:
            log.append(record)
    assert list(read_records(run_dir)) == records


@given(LONG)
def test_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


@given(st.lists(st.integers(1, 40), max_size=30))
def test_numbers_of_texts_survive_being_drawn_together(ids: list[int]) -> None:
    assert split_ids(join_ids(ids)) == ids


def test_a_text_that_is_written_again_is_kept_once(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append(*(asked(n, TURN, TURN) for n in range(20)))
    with LogWriter(tmp_path) as log:
        log.append(*(asked(n, TURN) for n in range(20, 30)))
    assert sum(TURN in text for text in texts_of(tmp_path)) == 1
    with closing(sqlite3.connect(log_path(tmp_path))) as db:
        assert not db.execute("SELECT 1 FROM records WHERE instr(body, ?)", (TURN,)).fetchall()


def test_prompts_share_the_lines_that_they_have_in_common(tmp_path: Path) -> None:
    lines = [f"{n} {TURN}" for n in range(30)]
    prompts = ["\n".join([*lines, f"Question {n}: which of the thirty things that were said above is right?"])
               for n in range(10)]  # fmt: skip
    with LogWriter(tmp_path) as log:
        log.append(*(call(n, prompt) for n, prompt in enumerate(prompts)))
    assert len(texts_of(tmp_path)) == 30 + 10  # the shared lines once, and the last line of each prompt
    assert [r.prompt for r in read_records(tmp_path) if r.kind == "gateway_call"] == prompts


@pytest.mark.parametrize("statement", ["UPDATE texts SET body = ''", "DELETE FROM texts"])
def test_no_text_can_be_changed(tmp_path: Path, statement: str) -> None:
    with LogWriter(tmp_path) as log:
        log.append(asked(1, TURN))
    with closing(sqlite3.connect(log_path(tmp_path))) as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)


def test_a_text_whose_record_failed_is_written_with_the_next_record_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer remembers which texts it has written, but not those of a transaction that was rolled back."""

    with LogWriter(tmp_path) as log:
        # It breaks off at the records' rows: their texts are in the open transaction by then.
        full = BreaksOff(log._db, lambda: sqlite3.OperationalError("disk is full"))
        with monkeypatch.context() as patched, pytest.raises(LogFullError):
            patched.setattr(log, "_db", full)
            log.append(asked(1, TURN))
        log.append(asked(2, TURN))
    (record,) = [r for r in read_records(tmp_path) if r.kind == "asked"]
    assert record == asked(2, TURN)


def test_a_log_that_lacks_a_text_is_named(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append(asked(1, TURN))
    with closing(sqlite3.connect(log_path(tmp_path))) as db:
        db.executescript("DROP TRIGGER texts_no_delete; DELETE FROM texts;")
    with pytest.raises(LogError, match=r"run\.sqlite: record 1 does not parse: it lacks"):
        list(read_records(tmp_path))


def test_a_damaged_text_is_named(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append(asked(1, TURN * 10))
    with closing(sqlite3.connect(log_path(tmp_path))) as db:
        db.executescript("DROP TRIGGER texts_no_update; UPDATE texts SET body = X'00FF';")
    with pytest.raises(LogError, match=r"record 1 does not parse"):
        list(read_records(tmp_path))


def test_a_log_of_version_1_is_read_as_it_is(tmp_path: Path) -> None:
    run_dir = shutil.copytree(VERSION_1, tmp_path / "old")
    assert check_schema(log_path(run_dir)) == 1
    kinds = Counter(r.kind for r in read_records(run_dir))
    assert (kinds["asked"], kinds["gateway_call"], kinds["question"]) == (19, 19, 19)
    first = next(r for r in read_records(run_dir, "asked") if r.kind == "asked")
    assert first.search is not None
    assert first.search.items[0].text
    assert check_schema(log_path(run_dir)) == 1


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        ("kept ×12: of 3: so ×4\nfar", Notice(code="kept", count=12, message="of 3: so ×4\nfar")),
        ("notices.left_out ×936", Notice(code="notices.left_out", count=936)),
        ("too much ×1", Notice(code="too much")),
    ],
)
def test_notices_of_old_logs_are_lines(tmp_path: Path, line: str, notice: Notice) -> None:
    """Logs of versions 1 to 3 hold notices as lines; they are read as records, and writing raises the version."""
    day = {"kind": "ingest", "cell_id": "c", "ego": "e", "namespace": "n", "code": "OK", "notices": [line]}
    counts = dict.fromkeys(("day", "sessions", "turns", "events", "payload_bytes", "duration_ns"), 0)
    run_dir = shutil.copytree(VERSION_1, tmp_path / "old")
    with closing(sqlite3.connect(log_path(run_dir))) as db, db:
        db.execute("INSERT INTO records (kind, cell_id, body) VALUES ('ingest', 'c', ?)", (json.dumps(day | counts),))
    (ingest,) = (record for record in read_records(run_dir, "ingest") if record.kind == "ingest" and record.ego == "e")
    assert ingest.notices == (notice,)
    assert notice.text == line
    with LogWriter(run_dir) as log:
        log.append(ingest)
    *_, again = read_records(run_dir, "ingest")
    assert again == ingest
    assert check_schema(log_path(run_dir)) == SCHEMA_VERSION


def test_a_log_of_version_1_can_be_written_on(tmp_path: Path) -> None:
    """The old records stay as they were; the new ones share texts."""
    run_dir = shutil.copytree(VERSION_1, tmp_path / "old")
    before = list(read_records(run_dir))
    with LogWriter(run_dir) as log:
        log.append(asked(1, TURN), asked(2, TURN))
    assert check_schema(log_path(run_dir)) == SCHEMA_VERSION
    assert list(read_records(run_dir)) == [*before, asked(1, TURN), asked(2, TURN)]
    assert len([text for text in texts_of(run_dir) if TURN in text]) == 1
