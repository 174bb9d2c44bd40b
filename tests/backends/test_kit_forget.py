"""Tests Forget in the kit: text is deleted from disk, replays still work, an older day store is migrated."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from memarena_backend import BackendServer, Capability, Description, Limits
from memarena_backend.store import STORE_NAME
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import Served, Verbatim, connect, make_day, make_event, make_session, message_of

FORGETS = frozenset({Capability.PROVENANCE, Capability.TIME_TRAVEL, Capability.FORGET})
DAYS = [
    make_day(
        "n1",
        0,
        [make_session("s1", ["a canoe", "a kayak"]), make_session("s2", ["a raft"])],
        [make_event("e1", "Canoes sank")],
    ),
    make_day("n1", 1, [make_session("s3", ["a canoe again"], day=1)]),
]


def stored(folder: Path) -> bytes:
    """What the day store holds, unpacked."""
    with closing(sqlite3.connect(folder / STORE_NAME)) as db:
        return b"".join(zlib.decompress(frames) for (frames,) in db.execute("SELECT frames FROM days"))


def forget(served: Served, **target: str) -> int:
    return int(served.stub.Forget(pb.ForgetRequest(namespace="n1", **target), timeout=10).deleted_count)  # type: ignore[arg-type]


def test_what_is_forgotten_is_gone_from_index_and_disk_and_stays_gone(tmp_path: Path) -> None:
    server = BackendServer(lambda _: Verbatim(FORGETS), tmp_path, "127.0.0.1:0")
    try:
        with connect(server.address) as served:
            for frames in DAYS:
                served.ingest(frames)
            assert forget(served, subject="CANOE") == 3
            assert forget(served, subject="CANOE") == 0
            assert served.find("n1", "canoe", 1) == []
            assert served.find("n1", "kayak", 1) == ["a kayak"]
            assert forget(served, session_id="s2") == 1
            assert all(served.ingest(frames).replayed for frames in DAYS)
            assert served.find("n1", "raft", 1) == served.find("n1", "canoe", 0) == []
    finally:
        server.stop()
    stored_bytes = stored(tmp_path)
    assert b"kayak" in stored_bytes
    assert b"canoe" not in stored_bytes.lower()
    again = BackendServer(lambda _: Verbatim(FORGETS), tmp_path, "127.0.0.1:0")
    try:
        with connect(again.address) as served:
            assert served.find("n1", "canoe", 1) == []
            assert served.find("n1", "kayak", 1) == ["a kayak"]
    finally:
        again.stop()


def test_a_day_store_of_before_is_taken_over(tmp_path: Path) -> None:
    server = BackendServer(lambda _: Verbatim(FORGETS), tmp_path, "127.0.0.1:0")
    try:
        with connect(server.address) as served:
            served.ingest(DAYS[0])
    finally:
        server.stop()
    with closing(sqlite3.connect(tmp_path / STORE_NAME, isolation_level=None)) as db:
        db.execute("ALTER TABLE days DROP COLUMN kept_digest")
        db.execute("PRAGMA user_version = 1")
    again = BackendServer(lambda _: Verbatim(FORGETS), tmp_path, "127.0.0.1:0")
    try:
        with connect(again.address) as served:
            assert served.find("n1", "canoe", 0) == ["a canoe"]
            assert forget(served, fact_text="a canoe") == 1
            assert served.find("n1", "canoe", 0) == []
    finally:
        again.stop()


def test_without_the_ability_it_is_unimplemented(tmp_path: Path) -> None:
    server = BackendServer(lambda _: Verbatim(), tmp_path, "127.0.0.1:0")
    try:
        with connect(server.address) as served, pytest.raises(grpc.RpcError) as refused:
            forget(served, subject="canoe")
    finally:
        server.stop()
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


class ShortDays(Verbatim):
    def describe(self) -> Description:
        return replace(super().describe(), limits=Limits(max_day_bytes=300))


def test_a_day_above_its_limit_is_refused_with_field_and_limit(tmp_path: Path) -> None:
    server = BackendServer(lambda _: ShortDays(), tmp_path, "127.0.0.1:0")
    try:
        with connect(server.address) as served:
            assert served.stub.Describe(pb.DescribeRequest(), timeout=10).limits.max_day_bytes == 300
            with pytest.raises(grpc.RpcError) as refused:
                served.ingest(DAYS[0])
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "day: " in message_of(refused.value)
            assert "above the limit of 300" in message_of(refused.value)
            assert not served.ingest(make_day("n1", 0, [])).replayed
    finally:
        server.stop()
