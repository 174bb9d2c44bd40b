"""Tests the day store and the gate separately: transactions, damage, full disks, order of waiting."""

from __future__ import annotations

import secrets
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from memarena_backend import Call, CallError, StoreError
from memarena_backend.day_decoder import DayAssembler, ReceivedDay
from memarena_backend.namespace_lock import Gate
from memarena_backend.store import STORE_NAME, DayStore
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import make_day, make_event, make_header, make_session, sealed


def received(frames: list[pb.IngestRequest]) -> ReceivedDay:
    assembler = DayAssembler()
    for frame in frames:
        assembler.add(frame)
    return assembler.finish()


def a_day(namespace: str, day: int, *texts: str) -> ReceivedDay:
    return received(
        make_day(namespace, day, [make_session(f"s{day}", texts, day=day)], [make_event(f"e{day}", "rain")])
    )


@contextmanager
def opened(path: Path) -> Iterator[DayStore]:
    store = DayStore(path)
    try:
        yield store
    finally:
        store.close()


def test_days_come_back_as_they_went_in_also_after_reopening(tmp_path: Path) -> None:
    days = [a_day("n1", 0, "a", ""), a_day("n1", 4, "é"), a_day("n2", 1, "b")]
    with opened(tmp_path) as store:
        for day in days:
            store.commit(day)
    with opened(tmp_path) as store:
        assert list(store.days("n1")) == [days[0].day, days[1].day]
        assert (store.last_day("n1"), store.last_day("n2"), store.last_day("n3")) == (4, 1, None)
        assert [store.day_at("n1", day) for day in (0, 3, 4, 9)] == [0, 0, 4, 4]
        batch = store.find_batch("n1", "b-n1-4")
        assert batch is not None
        assert (batch.day_index, batch.digest) == (4, days[1].digest)
        assert store.find_batch("n2", "b-n1-4") is None
        store.remove("n1")
        assert (store.last_day("n1"), store.find_batch("n1", "b-n1-4"), store.last_day("n2")) == (None, None, 1)


def test_the_token_of_a_call_is_never_written(tmp_path: Path) -> None:
    header = make_header("n1", 0)
    header.model_access.CopyFrom(pb.ModelAccess(base_url="http://gateway/v1", token="sekret-token"))
    day = received(sealed([pb.IngestRequest(header=header), pb.IngestRequest(session=make_session("s", ["boat"]))]))
    assert not any(b"sekret-token" in frame for frame in day.frames)
    assert any(b"boat" in frame for frame in day.frames)


def test_a_damaged_day_is_reported_and_not_served(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.commit(a_day("n1", 0, "boat"))
        store.commit(a_day("n2", 0, "ship"))
    with sqlite3.connect(tmp_path / STORE_NAME) as db:
        (frames,) = db.execute("SELECT frames FROM days WHERE namespace = 'n2'").fetchone()
        db.execute("UPDATE days SET frames = ? WHERE namespace = 'n1'", (frames,))
        db.execute("UPDATE days SET frames = x'00' WHERE namespace = 'n2'")
    db.close()
    with opened(tmp_path) as store:
        for namespace in ("n1", "n2"):
            with pytest.raises(CallError) as caught:
                list(store.days(namespace))
            assert caught.value.code is grpc.StatusCode.DATA_LOSS


def test_a_full_disk_is_an_error_and_what_was_there_stays(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.commit(a_day("n1", 0, "boat"))
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(CallError, match="full") as caught:
            store.commit(a_day("n1", 1, secrets.token_hex(100_000)))
        assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        store._db.execute(f"PRAGMA max_page_count = {pages + 2000}")
        assert store.last_day("n1") == 0
        store.commit(a_day("n1", 1, "boat"))
        assert len(list(store.days("n1"))) == 2


def test_a_folder_serves_one_process_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(StoreError, match="another backend is using this folder"):
        DayStore(tmp_path)
    with opened(tmp_path):
        pass


def test_a_file_that_is_no_store_or_a_newer_one_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / STORE_NAME).write_text("this is no database, though it is long enough to be one" * 50)
    with pytest.raises(StoreError, match="cannot be opened as a day store"):
        DayStore(tmp_path)
    (tmp_path / STORE_NAME).unlink()
    with sqlite3.connect(tmp_path / STORE_NAME) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="version 99"):
        DayStore(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match="--data-dir"):
        DayStore(blocked / "below")


def test_a_process_that_dies_while_it_commits_leaves_whole_days_only(tmp_path: Path) -> None:
    """The child commits day after day, says so, and is killed between and in the middle of commits."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.backends.test_kit_store import a_day\n"
        "from memarena_backend.store import DayStore\n"
        "store = DayStore(Path(sys.argv[1]))\n"
        "first = (store.last_day('n1') or 0) + 1\n"
        "for number in range(first, first + 10_000):\n"
        "    store.commit(a_day('n1', number, *['boat ' * 200] * 40))\n"
        "    print(number, flush=True)\n"
    )
    for delay_s in (0.05, 0.021, 0.034, 0.013):
        root = Path(__file__).parents[2]
        with subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root
        ) as child:
            assert child.stdout is not None
            confirmed_days = [int(child.stdout.readline())]
            time.sleep(delay_s)
            child.kill()
            confirmed_days += [int(line) for line in child.stdout.read().splitlines()]
        with opened(tmp_path) as store:
            days = list(store.days("n1"))
            assert [day.index for day in days] == list(range(1, len(days) + 1))
            assert len(days) in (confirmed_days[-1], confirmed_days[-1] + 1), (
                "what was confirmed is there, and at most the one after it"
            )
            assert all(len(day.sessions[0].turns) == 40 for day in days)


# ------------------------------------------------------------------ the gate


class FakeContext:
    """A call whose client may go away."""

    def __init__(self) -> None:
        self.active = True

    def is_active(self) -> bool:
        return self.active

    def time_remaining(self) -> float | None:
        return None


def test_searches_share_a_namespace_and_a_day_has_it_alone() -> None:
    gate = Gate()
    with gate.shared("n1", Call.internal()), gate.shared("n1", Call.internal()):
        with pytest.raises(CallError) as caught, gate.alone("n1", Call.internal()):
            pass
        assert caught.value.code is grpc.StatusCode.ABORTED
        with gate.alone("n2", Call.internal()):
            pass
    with gate.alone("n1", Call.internal()):
        for enter in (gate.alone, gate.shared):
            with pytest.raises(CallError), enter("n1", Call.internal()):
                pass
    with gate.alone("n1", Call.internal()):
        pass


def test_a_call_waits_for_one_that_nobody_waits_for_any_more() -> None:
    gate, context, inside, leave = Gate(), FakeContext(), threading.Event(), threading.Event()

    def abandoned() -> None:
        with gate.alone("n1", Call(context)):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=abandoned)
    thread.start()
    assert inside.wait(10)
    with pytest.raises(CallError), gate.alone("n1", Call.internal()):
        pass
    context.active = False
    timer = threading.Timer(0.1, leave.set)
    timer.start()
    with gate.alone("n1", Call.internal()):
        assert leave.is_set()
    thread.join()
    timer.join()
