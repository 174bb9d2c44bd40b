"""Tests the backend mempalace over the contract: search, sources, atomic days, isolated namespaces, failures."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from memarena_proto import memory_backend_pb2 as pb

from backends.mempalace.tests.conftest import FAILING, IN_PROCESS, LACKING, Running, running
from tests.backends.own_environment import refused
from tests.backends.support import bad_fields, code_of, make_event, make_session, message_of
from tests.support.model_script import Script
from tests.support.model_server import ModelServer

if LACKING:
    pytest.skip(LACKING, allow_module_level=True)

OTHERS = {"MEMPALACE_BACKEND": "chroma", "MEMPALACE_EMBEDDING_MODEL": "minilm"}
"""Settings that a user may have made for another MemPalace."""
LONG = " ".join(f"step{number}" for number in range(1_000))


def told(session_id: str, text: str, day: int = 0) -> pb.Session:
    return make_session(session_id, [text, "I see."], day=day)


def test_search_by_meaning_returns_items_with_their_sources(alone: Running) -> None:
    puppy = make_session("s1", ["My puppy chewed the sofa again", "Oh no, bad dog"])
    counts = alone.ingest("meaning", 0, puppy, told("s2", "The mortgage rate went up"), told("s3", "Rain all week"))
    assert counts == {"sessions_given": 3, "memories_stored": 3}
    best, *rest = alone.search("meaning", "animals at home", 0)
    assert (list(best.source_session_ids), list(best.source_turn_ids)) == (["s1"], ["s1.0", "s1.1"])
    assert best.text == "Maya Chen: My puppy chewed the sofa again\nOmar Haddad: Oh no, bad dog"
    assert (best.time, best.derived, len(rest)) == ("2025-01-01T09:00:00+00:00", False, 2)


def test_a_long_turn_is_returned_whole_and_once(gateway: Running) -> None:
    counts = gateway.ingest("long", 0, make_session("s1", [LONG]), told("s2", "Something else was said."))
    assert counts["memories_stored"] > 8
    items = gateway.search("long", "step500 step501", 0)
    matches = [item for item in items if "step500" in item.text]
    assert [item.text for item in matches] == [f"Maya Chen: {LONG}"]
    assert list(matches[0].source_turn_ids) == ["s1.0"]


def test_equal_turns_of_two_sessions_are_returned_as_an_item_with_both_sources(gateway: Running) -> None:
    words = "The key of the shed is under the third stone to the left of the old apple tree behind the house, as ever."
    gateway.ingest("twice", 0, make_session("s1", [words]), make_session("s2", [words]))
    (item,) = gateway.search("twice", "key", 0)
    assert sorted(item.source_session_ids) == ["s1", "s2"]
    assert sorted(item.source_turn_ids) == ["s1.0", "s2.0"]


def test_an_event_is_returned_with_its_id(gateway: Running) -> None:
    counts = gateway.ingest("event", 0, events=(make_event("e1", "A storm came over the harbour."),))
    assert counts == {"memories_stored": 1}
    (item,) = gateway.search("event", "storm", 0)
    assert (list(item.source_event_ids), list(item.source_session_ids)) == (["e1"], [])


def test_namespaces_with_a_common_prefix_are_isolated(gateway: Running) -> None:
    names = ("u1", "u10", "U1", "u_1", "../u1")
    for name in names:
        gateway.ingest(name, 0, told("s", f"the secret of {name} is out"))
    for name in names:
        (text,) = gateway.texts(name, "secret", 0)
        assert f"the secret of {name} is out" in text


def test_requests_have_the_token_of_their_call_and_a_text_is_embedded_once_a_day(gateway: Running) -> None:
    assert gateway.embedder is not None
    gateway.ingest("token", 0, told("s1", "good morning"), told("s2", "good morning"))
    assert gateway.embedded() == ["Maya Chen: good morning\nOmar Haddad: I see."]
    gateway.search("token", "morning", 0)
    assert gateway.embedded()[1:] == ["morning"]
    authorizations = [request.headers["Authorization"] for request in gateway.embedder.received]
    assert authorizations == [f"Bearer {token}" for token in gateway.issued[-2:]]


def test_a_day_without_text_is_committed_and_embeds_nothing(gateway: Running) -> None:
    assert gateway.ingest("empty", 0) == {}
    assert gateway.texts("empty", "anything", 0) == []
    assert gateway.ingest("empty", 1, make_session("s", ["", "  "], day=1)) == {}
    assert gateway.embedded() == []


@pytest.mark.parametrize("script", [FAILING, Script(fault="malformed")], ids=["503", "no JSON"])
def test_a_day_with_a_failing_embedder_leaves_nothing_and_can_be_sent_again(gateway: Running, script: Script) -> None:
    name = f"fails-{script.fault}"
    gateway.ingest(name, 0, told("s1", "apple pie"))
    assert gateway.embedder is not None
    gateway.embedder.script = script
    error = refused(lambda: gateway.ingest(name, 1, told("s2", "pear cake", day=1)))
    assert code_of(error) is grpc.StatusCode.UNAVAILABLE
    assert "null-embedder" in message_of(error)
    assert code_of(refused(lambda: gateway.search(name, "apple", 0))) is grpc.StatusCode.UNAVAILABLE
    gateway.embedder.script = Script()
    assert len(gateway.texts(name, "apple", 0)) == 1
    gateway.ingest(name, 1, told("s2", "pear cake", day=1))
    assert len(gateway.texts(name, "pear", 1)) == 2


def test_a_deadline_during_an_ingest_leaves_nothing_of_the_day(gateway: Running) -> None:
    gateway.ingest("deadline", 0, told("s1", "apple pie"))
    assert gateway.embedder is not None
    gateway.embedder.script = Script(delay_s=3.0)
    error = refused(lambda: gateway.ingest("deadline", 1, told("s2", "pear cake", day=1), timeout_s=0.5))
    assert code_of(error) is grpc.StatusCode.DEADLINE_EXCEEDED
    gateway.embedder.script = Script()
    assert _until_answered(lambda: gateway.texts("deadline", "pear", 0)) == [
        "Maya Chen: apple pie\nOmar Haddad: I see."
    ]


def test_a_palace_refuses_an_embedder_other_than_its_own(gateway: Running) -> None:
    gateway.ingest("model", 0, told("s1", "apple pie"))
    gateway.model = "another-embedder"
    error = refused(lambda: gateway.search("model", "apple", 0))
    assert code_of(error) is grpc.StatusCode.FAILED_PRECONDITION
    assert "null-embedder" in message_of(error)
    error = refused(lambda: gateway.ingest("model", 1, told("s2", "pear", day=1)))
    assert code_of(error) is grpc.StatusCode.FAILED_PRECONDITION
    gateway.embedder = None
    error = refused(lambda: gateway.search("model", "apple", 0))
    assert (code_of(error), bad_fields(error)) == (grpc.StatusCode.INVALID_ARGUMENT, ["model_access"])


def test_after_a_kill_during_an_ingest_it_continues_from_the_previous_day(
    tmp_path: Path, embedder: ModelServer
) -> None:
    with running(tmp_path, embedder) as backend:
        backend.ingest("n", 0, told("s1", "apple pie"))
        embedder.script = Script(delay_s=5.0)
        before = len(embedder.received)
        sending = threading.Thread(
            target=refused, args=[lambda: backend.ingest("n", 1, told("s2", "pear cake", day=1))]
        )
        sending.start()
        _until(lambda: len(embedder.received) > before)
        backend.kill()
        sending.join()
    embedder.script = Script()
    with running(tmp_path, embedder) as backend:
        assert len(backend.texts("n", "pie", 0)) == 1
        backend.ingest("n", 1, told("s2", "pear cake", day=1))
        assert len(backend.texts("n", "pear", 1)) == 2


def test_a_lost_palace_is_an_error_with_a_gateway_and_is_rebuilt_with_the_model_in_the_process(
    tmp_path: Path, embedder: ModelServer
) -> None:
    with running(tmp_path, embedder) as backend:
        backend.ingest("n", 0, told("s1", "apple pie"))
    shutil.rmtree(tmp_path / "data" / "palaces")
    with running(tmp_path, embedder) as backend:
        error = refused(lambda: backend.search("n", "apple", 0))
        assert code_of(error) is grpc.StatusCode.FAILED_PRECONDITION
        assert "Reset the namespace" in message_of(error)
    with running(tmp_path, settings=IN_PROCESS) as backend:
        assert len(backend.texts("n", "apple", 0)) == 1


def test_a_search_in_a_damaged_palace_is_an_error(tmp_path: Path) -> None:
    """MemPalace itself returns an empty list and a reason for any failure."""
    with running(tmp_path, settings=IN_PROCESS) as backend:
        backend.ingest("n", 0, told("s1", "apple pie"))
    (store,) = (tmp_path / "data").rglob("sqlite_exact.sqlite3")
    store.write_bytes(store.read_bytes()[:4096] + bytes(50_000))
    with running(tmp_path, settings=IN_PROCESS) as backend:
        error = refused(lambda: backend.search("n", "apple", 0))
    assert code_of(error) is grpc.StatusCode.INTERNAL
    assert message_of(error).startswith("MemPalaceError: ")


def test_forget_deletes_a_session_and_keeps_the_others(alone: Running) -> None:
    alone.ingest("forget", 0, told("s1", "my code is 4711 for the gate"), told("s2", "the cat is on the roof again"))
    alone.served.stub.Forget(pb.ForgetRequest(namespace="forget", session_id="s1"), timeout=20)
    (text,) = alone.texts("forget", "code of the gate", 0)
    assert "cat" in text


def test_it_works_without_network_and_writes_only_to_its_data_folder(tmp_path: Path) -> None:
    guard = (
        "import sys, os\n"
        "def told(event, args):\n"
        "    host = args[1][0] if event == 'socket.connect' and isinstance(args[1], tuple) else None\n"
        "    host = args[0] if event == 'socket.getaddrinfo' else host\n"
        "    if host not in (None, '', '127.0.0.1', '::1', 'localhost', '0.0.0.0'):\n"
        "        os.write(2, f'NETWORK {event} {host}\\n'.encode()); os._exit(9)\n"
        "sys.addaudithook(told)\n"
    )
    with running(tmp_path, code=guard, settings=IN_PROCESS) as backend:
        backend.ingest("n", 0, told("s1", "apple pie"))
        backend.ingest("n", 1, told("s2", "pear cake", day=1))
        assert len(backend.texts("n", "apple", 1)) == 2
        backend.process.terminate()
        assert backend.process.wait(timeout=20) == 0
    assert "NETWORK" not in (tmp_path / "stderr.log").read_text()
    for name in ("home", "tmp", "current"):
        assert list((tmp_path / name).rglob("*")) == []


def test_settings_of_the_users_own_mempalace_have_no_effect(tmp_path: Path, embedder: ModelServer) -> None:
    (tmp_path / "home" / ".mempalace").mkdir(parents=True)
    (tmp_path / "home" / ".mempalace" / "config.json").write_text('{"backend": "chroma", "collection_name": "mine"}')
    with running(tmp_path, embedder, settings=OTHERS) as backend:
        backend.ingest("n", 0, told("s1", "apple pie"))
        assert len(backend.texts("n", "apple", 0)) == 1
    assert len(list((tmp_path / "data").rglob("sqlite_exact.sqlite3"))) == 1


def _until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def _until_answered(ask: Callable[[], list[str]]) -> list[str]:
    """Return the answer once the previous call has ended: until then the namespace is locked (ABORTED)."""
    give_up_at = time.monotonic() + 20
    while True:
        try:
            return ask()
        except grpc.RpcError as error:
            assert code_of(error) is grpc.StatusCode.ABORTED and time.monotonic() < give_up_at
            time.sleep(0.05)
