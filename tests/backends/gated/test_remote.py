"""Tests the gate over a backend at an address: same decisions, nothing lost by a restart, failures that name it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from memarena_backend import Call, Capability, Query, SearchResult, Security, ServeError
from memarena_backend_bm25 import Bm25Memory
from memarena_backend_gated import GatedMemory, remote
from memarena_backend_gated.__main__ import make_memory
from memarena_backend_gated.settings import Remote, Settings, read_settings
from memarena_backend_gated.store import STORE_NAME, RecordStore
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.frames import split_session

from tests.backends.support import (
    Served,
    Verbatim,
    code_of,
    connect,
    make_day,
    make_event,
    make_query,
    make_session,
    message_of,
    serve,
)

TOKEN = Security(bearer_token="open sesame")
OWNER = pb.Requester(kind=pb.REQUESTER_KIND_OWNER)
PAULO = pb.Requester(
    kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id="p-x", display_name="Paulo Reis", relationship="colleague"
)
TALK = ["Hi!", "I sold my sailboat for 9400 euros. Keep that from Paulo.", "Oh!", "The sailboat is in the harbour."]
ABILITIES = frozenset({Capability.PROVENANCE, Capability.FORGET})


def gate(address: str, folder: Path) -> GatedMemory:
    folder.mkdir(exist_ok=True)
    beneath = remote.RemoteMemory(Remote(address, "open sesame"))
    return GatedMemory(beneath, RecordStore(folder / STORE_NAME), Settings())


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that other threads bring about."""
    for _ in range(2_000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never held")


def serving(served: Served) -> bool:
    health = health_pb2_grpc.HealthStub(served.channel)
    status = health.Check(health_pb2.HealthCheckRequest(), timeout=20.0).status
    return bool(status == health_pb2.HealthCheckResponse.SERVING)


def test_the_gate_decides_and_everything_else_is_passed_on(tmp_path: Path) -> None:
    long = make_session("s2", ["lighthouse " + "x" * 200_000 for _ in range(9)], minute=30, place="quay", group="crew")
    with serve(Bm25Memory(), tmp_path / "b", TOKEN) as below, serve(gate(below.address, tmp_path), tmp_path) as served:
        described = served.stub.Describe(pb.DescribeRequest(), timeout=20.0)
        assert described.name == "gated"
        assert "over bm25" in described.version
        assert {"k", "unclear"} <= {option.key for option in described.options}
        sessions = [make_session("s1", TALK), *split_session(long)]
        served.ingest(make_day("n1", 0, sessions, [make_event("e1", "fair in town")]))
        for asker, price in ((OWNER, True), (PAULO, False)):
            texts = served.find("n1", "sailboat euros", 0, requester=asker)
            assert sum("9400" in text for text in texts) == price
        assert len([text for text in served.find("n1", "lighthouse", 0) if "lighthouse" in text]) == 9
        assert len(served.find("n1", "sailboat", 0, options=[pb.Option(key="k", value="1")])) == 1
        assert len(served.find("n1", "sailboat", 0, max_items=2)) == 2
        served.stub.Forget(pb.ForgetRequest(namespace="n1", session_id="s1"), timeout=20.0)
        assert not [text for text in served.find("n1", "sailboat", 0) if "sailboat" in text]
        served.reset("n1")
        with connect(below.address) as direct, pytest.raises(grpc.RpcError) as refused:
            query = make_query("n1", "sailboat", 0)
            direct.stub.Search(query, timeout=20.0, metadata=(("authorization", "Bearer open sesame"),))
        assert code_of(refused.value) is grpc.StatusCode.NOT_FOUND


def test_what_the_backend_beneath_holds_is_put_right_after_a_restart(tmp_path: Path) -> None:
    memory = Verbatim(ABILITIES)
    days = [make_day("n1", day, [make_session(f"s{day}", [f"day {day}"], day=day)]) for day in range(3)]
    with serve(memory, tmp_path / "b", TOKEN) as below:
        with serve(gate(below.address, tmp_path), tmp_path) as served:
            for day in days[:2]:
                served.ingest(day)
        with serve(gate(below.address, tmp_path), tmp_path) as served:
            assert served.find("n1", "day", 1) == ["day 0", "day 1"]
        # A day that the backend beneath has and the gate does not: a commit that failed in between.
        shutil.copytree(tmp_path, tmp_path.with_name("copy"))
        with serve(gate(below.address, tmp_path.with_name("copy")), tmp_path.with_name("copy")) as served:
            served.ingest(days[2])
            assert served.find("n1", "day", 2) == ["day 0", "day 1", "day 2"]
        with serve(gate(below.address, tmp_path), tmp_path) as served:
            assert served.find("n1", "day", 1) == ["day 0", "day 1"]
        # A gate that holds no day of the namespace yet.
        with serve(gate(below.address, tmp_path / "new"), tmp_path / "new") as served:
            served.ingest(days[0])
            assert served.find("n1", "day", 0) == ["day 0"]
    # Another backend, which holds nothing.
    with (
        serve(Verbatim(ABILITIES), tmp_path / "c", TOKEN) as below,
        serve(gate(below.address, tmp_path), tmp_path) as served,
    ):
        assert served.find("n1", "day", 1) == ["day 0", "day 1"]


class Waiting(Verbatim):
    """Holds each Search until its caller has left."""

    def __init__(self) -> None:
        super().__init__(ABILITIES)
        self.asked, self.left = threading.Event(), threading.Event()

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        self.asked.set()
        until(lambda: not call.is_active())
        self.left.set()
        call.check()
        return SearchResult([])


def test_a_backend_beneath_that_is_slow_or_away_ends_the_call_and_shows_in_health(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LOOK_S", 0.05)
    memory = Waiting()
    with serve(memory, tmp_path / "b", TOKEN) as below, serve(gate(below.address, tmp_path), tmp_path) as served:
        served.ingest(make_day("n1", 0, [make_session("s1", TALK)]))
        query = make_query("n1", "sailboat", 0)
        with pytest.raises(grpc.RpcError) as late:
            served.search(query, timeout_s=1.0)
        assert code_of(late.value) is grpc.StatusCode.DEADLINE_EXCEEDED
        assert memory.left.wait(20.0)
        memory.asked.clear()
        memory.left.clear()
        pending = served.stub.Search.future(query, timeout=60.0)
        assert memory.asked.wait(20.0)
        pending.cancel()
        assert memory.left.wait(20.0)
        assert serving(served)
    with serve(Verbatim(ABILITIES), tmp_path / "c", TOKEN) as below:
        running = serve(gate(below.address, tmp_path / "d"), tmp_path / "d")
        served = running.__enter__()
    try:
        address = below.address
        for call in (lambda: served.search(query), lambda: served.ingest(make_day("n1", 0))):
            with pytest.raises(grpc.RpcError) as away:
                call()
        assert code_of(away.value) is grpc.StatusCode.UNAVAILABLE
        assert f"the backend beneath at {address} failed Reset: UNAVAILABLE" in message_of(away.value)
        until(lambda: not serving(served))
    finally:
        running.__exit__(None, None, None)


BAD = [
    ({"GATED_ADDRESS": "nowhere"}, "GATED_ADDRESS: expected HOST:PORT, got 'nowhere'"),
    ({"GATED_ADDRESS": "127.0.0.1:70000"}, "GATED_ADDRESS: expected HOST:PORT, got '127.0.0.1:70000'"),
    ({"GATED_TOKEN": "t"}, "GATED_TOKEN: expected together with GATED_ADDRESS"),
    ({"GATED_ADDRESS": "h:1", "GATED_TOKEN": "é"}, "GATED_TOKEN: expected printable ASCII"),
    ({"GATED_ADDRESS": "h:1", "GATED_TLS_CA": "/nowhere.pem"}, "GATED_TLS_CA: /nowhere.pem: No such file or directory"),
    (
        {"GATED_ADDRESS": "h:1", "GATED_MEMORY": "bm25"},
        "GATED_ADDRESS: expected without GATED_MEMORY: one memory is beneath, a library or an address",
    ),
]


@pytest.mark.parametrize(("environment", "line"), BAD)
def test_settings_of_an_address_that_cannot_be_used_are_named(environment: dict[str, str], line: str) -> None:
    with pytest.raises(ServeError) as refused:
        read_settings(environment)
    assert str(refused.value) == line


def test_a_gate_does_not_start_over_what_it_cannot_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(address: str, token: str) -> str:
        monkeypatch.setenv("GATED_ADDRESS", address)
        monkeypatch.setenv("GATED_TOKEN", token)
        with pytest.raises(ServeError) as refused:
            make_memory(tmp_path)
        return str(refused.value)

    with serve(Verbatim(ABILITIES), tmp_path / "b", TOKEN) as below:
        wrong = refusal(below.address, "wrong")
        assert wrong.startswith(f"GATED_ADDRESS: {below.address}: Describe failed: UNAUTHENTICATED")
        with serve(gate(below.address, tmp_path / "d"), tmp_path / "d") as gated:
            assert refusal(gated.address, "any") == (
                "the memory beneath has an option unclear itself: expected one without a gate"
            )
    monkeypatch.setattr(remote, "START_S", 0.2)
    assert refusal(below.address, "t").endswith("no backend can be reached there within 0.2 s")
